// Hellinger distance between the distributions of two rows of logits (core/kernels/hellinger.h): Device::hellinger. A
// block reads both rows twice, 16 bytes per pair of fp32 logits: for the sums (softmax_sums.cuh), and for
//   Σ (2^(½ y_j - ½ log2 S) - the other's)²
#include "core/kernels/hellinger.h"
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/softmax_sums.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 256;

// Scale and offset that turn a logit into √p.
struct RootScale {
  float origin, shift;

  __device__ float root(float z, float half_factor) const {
    return power_of_2(fmaxf((z - origin) * half_factor, least_exponent) - shift);
  }
};

// Scale of one row, returned to all threads of the block.
template <class Logit>
__device__ RootScale root_scale(int64_t vocab, const Logit* row, float factor) {
  __shared__ RootScale scale;
  __syncthreads();  // the last call's scale and partial sums have been read
  const SoftmaxSums sums = row_sums<threads>(vocab, row, factor);
  if (threadIdx.x == 0) scale = {sums.origin, float(0.5 * log2(double(sums.exponentials)))};
  __syncthreads();
  return scale;
}

template <class Logit>
__global__ void __launch_bounds__(threads) hellinger_kernel(int64_t vocab, const Logit* logits, int64_t stride, const Logit* others,
                                                            int64_t others_stride, double temperature, float* distances) {
  const float factor = base2_factor(temperature);
  const Logit* z = logits + int64_t{blockIdx.x} * stride;
  const Logit* w = others + int64_t{blockIdx.x} * others_stride;
  const RootScale of_z = root_scale(vocab, z, factor), of_w = root_scale(vocab, w, factor);
  double squares = 0;
  const auto add = [&](float a, float b) {
    const float difference = of_z.root(a, factor / 2) - of_w.root(b, factor / 2);
    return difference * difference;
  };
  if (in_packs(vocab, z) && in_packs(vocab, w)) {
    constexpr int size = full_width<Logit>;
    for (int64_t i = threadIdx.x; i < vocab / size; i += threads) {
      float a[size], b[size], sum = 0;
      widen(reinterpret_cast<const LogitPack*>(z)[i], a);
      widen(reinterpret_cast<const LogitPack*>(w)[i], b);
#pragma unroll
      for (int k = 0; k < size; k++) sum += add(a[k], b[k]);
      squares += double(sum);
    }
  } else {
    for (int64_t j = threadIdx.x; j < vocab; j += threads) squares += double(add(to_float(z[j]), to_float(w[j])));
  }
  squares = block_sum(squares);
  if (threadIdx.x == 0) distances[blockIdx.x] = float(hellinger_of(squares));
}

}  // namespace

void hellinger(Tensor logits, Tensor others, double temperature, float* distances, cudaStream_t stream) {
  if (logits.rows == 0) return;
  with_type(logits.type, [&](auto tag) {
    using Logit = typename decltype(tag)::type;
    launch(hellinger_kernel<Logit>, dim3(unsigned(logits.rows)), dim3(threads), 0, stream, logits.columns,
           static_cast<const Logit*>(logits.data), logits.stride, static_cast<const Logit*>(others.data), others.stride,
           temperature, distances);
  });
}

}  // namespace gigpo::cuda
