// Test of matrix products with small integers, before an external library, or our kernels on a new GPU model, are used.
#pragma once
#include <functional>
#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// Queues a product. Returns false if it is not supported.
using Multiply = std::function<bool(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream)>;

// Description of the first error on the current device, or "".
std::string matmul_self_test(const Multiply& multiply);

}  // namespace gigpo::cuda
