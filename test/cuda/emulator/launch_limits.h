// What a kernel takes of a multiprocessor, and what a launch may take: of an H100, as its kernels are compiled for sm_90a.
#pragma once
#include <cstddef>

#include "cuda_runtime_api.h"

namespace gigpo::cuda::emulator {

// cudaSuccess, or what CUDA says to a launch of so many threads and so much dynamic shared memory.
cudaError_t check_limits(const void* kernel, unsigned threads, size_t shared_bytes);

}  // namespace gigpo::cuda::emulator
