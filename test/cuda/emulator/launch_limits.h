// Resources of a kernel and limits of a launch: those of an H100, because kernels are compiled for sm_90a.
#pragma once
#include <cstddef>

#include "cuda_runtime_api.h"

namespace gigpo::cuda::emulator {

// Status that CUDA returns for a launch with so many threads and so much dynamic shared memory.
cudaError_t check_limits(const void* kernel, unsigned threads, size_t shared_bytes);

}  // namespace gigpo::cuda::emulator
