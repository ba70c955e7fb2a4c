// launch(kernel, grid, block, shared bytes, stream, arguments...): queues a kernel with this amount of dynamic shared memory. Launch errors
// throw; execution errors are reported at the next synchronisation.
#pragma once
#include <cuda_runtime.h>

#include <utility>

#include "cuda/check.h"
#include "cuda/switches.h"

namespace gigpo::cuda {

#ifdef GIGPO_CUDA_EMULATOR
using emulator::Grid;  // records the source location of the launch
#else
using Grid = dim3;
#endif

// Shared memory that a block may use without opt-in: static arrays and dynamic memory together, in bytes.
constexpr size_t default_shared_bytes = 48 << 10;

// Attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}
inline int count_multiprocessors() { return device_attribute(cudaDevAttrMultiProcessorCount); }

// Start of a kernel: after the end of the previous kernel in the stream, or as soon as the blocks of that kernel leave room.
enum class Starts { after_previous, early };

// Whether programmatic dependent launch is available: recordings support `early` since CUDA 12.3 (graph edges with
// launch dependencies).
inline bool may_start_early() {
  static const bool known = [] {
    int version = 0;
    return !is_off("GIGPO_EARLY_LAUNCH") && cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
  }();
  return known;
}

template <class... Parameters, class... Arguments>
void launch_kernel(Starts starts, void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   Arguments&&... arguments) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes = {};  // queried only where needed
  if (shared_bytes > 0 || starts == Starts::early) CUDA_CHECK(cudaFuncGetAttributes(&attributes, function));
  if (shared_bytes > 0 && attributes.sharedSizeBytes + shared_bytes > default_shared_bytes)
    CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)));
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  // A kernel compiled for older architectures does not contain the wait, whatever GPU it runs on.
  const bool early = starts == Starts::early && attributes.ptxVersion >= 90 && may_start_early();
  const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, &overlap, early};
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  launch_kernel(Starts::after_previous, kernel, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

// Launch of a kernel each of whose threads calls wait_for_previous_kernel() (cuda/ptx.cuh, which documents what may
// precede that call). The kernel is resident, with its first instructions executed, when the previous one in the stream
// or recording ends (programmatic dependent launch).
//
// Prediction for decoding, not measured on a GPU yet: at 132 multiprocessors a layer of Qwen2.5 0.5B or 1.5B is 12
// kernels (2 norms; 4 products, of which 3 are split into ranges that a second kernel adds up; heads; attention;
// SwiGLU), down from 14 before heads were transformed and stored in one kernel and span_kernel combined its own spans.
// If each of the 12 now hides 1.75 us of start and end, and each of the two removed ones took 2.5 us, a step of 256
// sequences is 24 (28) layers times 26 us shorter: from 87,000 to 110,000 tokens per second for 0.5B, from 45,000 to
// 52,000 for 1.5B.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                  Arguments&&... arguments) {
  launch_kernel(Starts::early, kernel, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace gigpo::cuda
