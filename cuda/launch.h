// launch(kernel, grid, block, shared bytes, stream, arguments...): queues a kernel with this amount of dynamic shared memory. Launch errors
// throw; execution errors are reported at the next synchronisation.
#pragma once
#include <cuda_runtime.h>

#include <utility>

#include "cuda/check.h"

namespace gigpo::cuda {

#ifdef GIGPO_CUDA_EMULATOR
using emulator::Grid;  // which knows where it was launched
#else
using Grid = dim3;
#endif

// Shared memory that a block may use without opt-in: static arrays and dynamic memory together, in bytes.
constexpr size_t shared_bytes_without_asking = 48 << 10;

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

// Recordings keep the second since CUDA 12.3 (edges of graphs that say when a dependent may start).
inline bool may_start_early() {
  static const bool known = [] {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
  }();
  return known;
}

template <class... Parameters, class... Arguments>
void launch_kernel(Starts starts, void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   Arguments&&... arguments) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes = {};  // asked for where they decide something
  if (shared_bytes > 0 || starts == Starts::early) CUDA_CHECK(cudaFuncGetAttributes(&attributes, function));
  if (shared_bytes > 0 && attributes.sharedSizeBytes + shared_bytes > shared_bytes_without_asking)
    CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)));
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  // Compiled for older architectures, on whatever card it then runs, a kernel has nothing in it that would wait.
  const bool early = starts == Starts::early && attributes.ptxVersion >= 90 && may_start_early();
  const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, &overlap, early};
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  launch_kernel(Starts::after_previous, kernel, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

// Likewise, of a kernel each of whose threads calls wait_for_previous_kernel() (cuda/ptx.cuh), which says what may stand before
// that: it is on the card, with its first instructions done, when the one before it in the stream or recording ends
// (programmatic dependent launch).
//
// Predicted for decoding, which no card has confirmed yet: a layer of Qwen2.5 0.5B or 1.5B is 12 kernels at 132 multiprocessors
// (2 norms; 4 products, of which 3 are cut into ranges that a second kernel adds up; heads; attention; SwiGLU), where it was 14
// before heads were transformed and stored at once and span_kernel folded its own spans. If each of the 12 now hides 1.75 us of
// starting and ending, and each of the two took 2.5 us, a step of 256 sequences is 24 (28) layers times 26 us shorter: 0.5B
// goes from 87,000 tokens a second to 110,000, 1.5B from 45,000 to 52,000.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                  Arguments&&... arguments) {
  launch_kernel(Starts::early, kernel, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace gigpo::cuda
