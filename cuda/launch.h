// launch(kernel, grid, block, shared bytes, stream, arguments...): queues a kernel, with as much dynamic shared memory as
// it asks for. An error of the launch throws; an error of the run shows at the next synchronisation.
#pragma once
#include <cuda_runtime.h>

#include <tuple>
#include <utility>

#include "cuda/check.h"

namespace gigpo::cuda {

#ifdef GIGPO_CUDA_EMULATOR
using emulator::Grid;  // which knows where it was launched
#else
using Grid = dim3;
#endif

// What a block has of shared memory without asking: its static arrays and what the launch adds to them, together.
constexpr size_t shared_bytes_without_asking = 48 << 10;

inline void allow_shared_bytes(const void* kernel, size_t dynamic_bytes) {
  if (dynamic_bytes == 0) return;
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.sharedSizeBytes + dynamic_bytes <= shared_bytes_without_asking) return;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(dynamic_bytes)));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&value))...};
        allow_shared_bytes(reinterpret_cast<const void*>(kernel), shared_bytes);
        CUDA_CHECK(cudaLaunchKernel(kernel, grid, block, pointers, shared_bytes, stream));
      },
      values);
}

}  // namespace gigpo::cuda
