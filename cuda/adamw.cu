// AdamW (core/kernels/moments.h), with moments in f32 or bf16 and a bf16 copy of the weights for the next forward pass.
#include "core/kernels/moments.h"
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 256;
constexpr int width = 4;  // weights that share a Philox call

__device__ void assign_moment(float* to, float value, uint32_t) { *to = value; }
__device__ void assign_moment(__nv_bfloat16* to, float value, uint32_t noise) {
  *to = __ushort_as_bfloat16(round_to_bf16(value, noise));
}

template <class Moment>
struct Buffers {
  float* weights;
  __nv_bfloat16* compute;
  const float* gradients;
  Moment *first, *second;
  bool aligned;  // at weights whose index is a multiple of four
};

// Memory traffic per weight: 28 bytes with moments in f32, 20 in bf16; 2 more with a bf16 copy. Blocks of four are
// counted from the start of the whole model's weights, so the first and the last block of a call may be partial.
template <class Moment>
__global__ void __launch_bounds__(threads)
adamw_kernel(Buffers<Moment> at, int64_t index, int64_t count, AdamWFactors factors, Key rounding) {
  const int64_t block = index / width + int64_t{blockIdx.x} * threads + threadIdx.x;
  const int64_t start = block * width - index;
  if (start >= count) return;
  Philox noise = {};
  if constexpr (!std::is_same_v<Moment, float>) noise = moment_noise(rounding, block);
  if (at.aligned && start >= 0 && start + width <= count) {
    float w[width], g[width], m[width], v[width];
    load(at.weights + start, w);
    load(at.gradients + start, g);
    load(at.first + start, m);
    load(at.second + start, v);
    Pack<Moment, width> first, second;
#pragma unroll
    for (int c = 0; c < width; c++) {
      const AdamWElement next = adamw_element({w[c], m[c], v[c]}, g[c], factors);
      w[c] = next.weight;
      assign_moment(&first.values[c], next.first, noise.word[c]);
      assign_moment(&second.values[c], next.second, noise.word[c] >> 16);
    }
    store(at.weights + start, w);
    store_pack(at.first + start, first);
    store_pack(at.second + start, second);
    if (at.compute) store(at.compute + start, w);
    return;
  }
#pragma unroll
  for (int c = 0; c < width; c++) {
    const int64_t i = start + c;
    if (i < 0 || i >= count) continue;
    const AdamWElement next =
        adamw_element({at.weights[i], to_float(at.first[i]), to_float(at.second[i])}, at.gradients[i], factors);
    at.weights[i] = next.weight;
    assign_moment(at.first + i, next.first, noise.word[c]);
    assign_moment(at.second + i, next.second, noise.word[c] >> 16);
    if (at.compute) assign(at.compute + i, next.weight);
  }
}

// Whether packs of four starting at element `-offset` would be aligned.
template <class T>
bool aligned(const T* data, int64_t offset) {
  return (reinterpret_cast<uintptr_t>(data) - uintptr_t(offset) * sizeof(T)) % (width * sizeof(T)) == 0;
}

}  // namespace

void adamw(const AdamWBuffers& buffers, const AdamW& step, cudaStream_t stream) {
  if (buffers.count == 0) return;
  with_type(buffers.moments, [&](auto tag) {
    using Moment = typename decltype(tag)::type;
    Buffers<Moment> at = {buffers.weights, static_cast<__nv_bfloat16*>(buffers.compute), buffers.gradients,
                          static_cast<Moment*>(buffers.first_moment), static_cast<Moment*>(buffers.second_moment), false};
    const int64_t offset = buffers.index % width;
    at.aligned = aligned(at.weights, offset) && aligned(at.gradients, offset) && aligned(at.first, offset) &&
                 aligned(at.second, offset) && (!at.compute || aligned(at.compute, offset));
    const int64_t blocks = (offset + buffers.count + width - 1) / width;
    launch(adamw_kernel<Moment>, dim3(unsigned((blocks + threads - 1) / threads)), dim3(threads), 0, stream, at,
           buffers.index, buffers.count, AdamWFactors(step), step.rounding);
  });
}

}  // namespace gigpo::cuda
