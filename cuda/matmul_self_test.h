// Products of small integers, before the kernels of others, or of a card that is new to ours, are trusted.
#pragma once
#include <functional>
#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// False when it does not take the product.
using Multiply = std::function<bool(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream)>;

// What is wrong with it on the current device, or "".
std::string matmul_self_test(const Multiply& multiply);

}  // namespace gigpo::cuda
