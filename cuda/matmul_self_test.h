// Test of matrix products with small integers, before an external library, or our kernels on a new GPU model, are used.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// Queues a product. Returns false if it is not supported.
using Multiply = std::function<bool(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream)>;

// Description of the first error on the current device, or "". `name` of the test, with the variable that turns off what it tests: a test that
// does not end within a minute throws Error DEVICE_LOST with it, and its memory is not freed, because freeing waits for the device.
std::string matmul_self_test(const Multiply& multiply, const std::string& name);

// The same for a gated product, gate_up = X · Wᵀ and its SwiGLU: it must equal the product and cuda/gated_unit.cu, one after the other.
using MultiplyGated = std::function<bool(Tensor x, Tensor weight, Tensor gate_up, Tensor activated, cudaStream_t stream)>;
std::string gated_self_test(const MultiplyGated& both, const Multiply& multiply, const std::string& name);

// Whether a self-test of this process did not end. The device is then lost.
bool self_test_hangs();

// Waits until `query` no longer returns cudaErrorNotReady. Returns false after `most`.
bool ends_within(std::chrono::milliseconds most, const std::function<cudaError_t()>& query);

}  // namespace gigpo::cuda
