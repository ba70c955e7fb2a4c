// launch(kernel, grid, block, shared bytes, stream, arguments...): queues a kernel, with as much dynamic shared memory as
// it asks for. An error of the launch throws; an error of the run shows at the next synchronisation.
#pragma once
#include <cuda_runtime_api.h>

#include <tuple>
#include <utility>

#include "cuda/check.h"

namespace gigpo::cuda {

#ifdef GIGPO_CUDA_EMULATOR

using emulator::launch;  // test/cuda/emulator

#else

constexpr size_t shared_bytes_without_asking = 48 << 10;

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&value))...};
        const auto* function = reinterpret_cast<const void*>(kernel);
        if (shared_bytes > shared_bytes_without_asking) {
          CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)));
        }
        CUDA_CHECK(cudaLaunchKernel(function, grid, block, pointers, shared_bytes, stream));
      },
      values);
}

#endif

}  // namespace gigpo::cuda
