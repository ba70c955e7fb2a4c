// Sums over a row of logits for log p, entropy and gradient, computed in a single pass over the row.
//   y_j = (z_j - origin) log2(e) / T,  S = Σ 2^y,  W = Σ 2^y y
//   log p_j = (z_j - origin) / T - log S,  H = log S - ln 2 W / S
// The formulas hold for any origin. The origin must be near the maximum, or above, so that the exponentials neither overflow nor lose
// precision. Each thread starts with the maximum of the first logits of its warp and moves the origin only if the 2^y of 16 bytes of the row
// sum to more than 2^10. This is rare, and no comparison per logit is needed.
#pragma once
#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/ptx.cuh"
#include "cuda/reduce.cuh"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

// 16 bytes of a row, as words, so that loaded data takes only 16 bytes of registers.
struct alignas(16) LogitPack {
  uint32_t words[4];
};

__device__ inline void widen(const LogitPack& pack, float (&z)[full_width<float>]) {
#pragma unroll
  for (int k = 0; k < 4; k++) z[k] = __uint_as_float(pack.words[k]);
}
__device__ inline void widen(const LogitPack& pack, float (&z)[full_width<__nv_bfloat16>]) {
#pragma unroll
  for (int k = 0; k < 4; k++) {
    z[2 * k] = __uint_as_float(pack.words[k] << 16);
    z[2 * k + 1] = __uint_as_float(pack.words[k] & 0xFFFF0000u);
  }
}

template <class Logit>
__host__ __device__ bool in_packs(int64_t vocab, const Logit* row) {
  return vocab % full_width<Logit> == 0 && reinterpret_cast<uintptr_t>(row) % 16 == 0;
}

constexpr double ln2 = 0.69314718055994530942;
constexpr float least_exponent = -150;  // 2^y is treated as 0 from here on; 0 · -inf would be NaN

// Softmax sums of part of a row. An empty part has origin = -inf and sums of 0.
struct SoftmaxSums {
  float origin = -INFINITY, exponentials = 0, weighted = 0;

  __device__ void move_to(float to, float factor) {
    if (exponentials != 0) {  // otherwise there is nothing to scale, and -inf - -inf would be NaN
      const float shift = fmaxf((origin - to) * factor, least_exponent), scale = power_of_2(shift);
      weighted = scale * (weighted + exponentials * shift);
      exponentials *= scale;
    }
    origin = to;
  }

  // Must be called once, by whole warps, before anything is added; a lane without logits passes NaN or -inf.
  template <int count>
  __device__ void begin(const float (&z)[count]) {
    for (int i = 0; i < count; i++) origin = fmaxf(origin, z[i]);
    for (int distance = 16; distance > 0; distance /= 2)
      origin = fmaxf(origin, __shfl_xor_sync(full_warp, origin, distance));
  }

  template <int count>
  __device__ void add(const float (&z)[count], float factor) {
    constexpr float most = 1024;
    float e_sum, y_sum;
    sum(z, origin, factor, &e_sum, &y_sum);
    if (!(e_sum <= most)) {  // also for NaN: origin is -inf, or a logit is not finite
      float top = z[0];
#pragma unroll
      for (int i = 1; i < count; i++) top = fmaxf(top, z[i]);  // ignores NaN, which shows in the sums
      if (top > origin) move_to(top, factor);
      sum(z, origin == -INFINITY ? 0 : origin, factor, &e_sum, &y_sum);  // -inf: only impossible tokens so far
    }
    exponentials += e_sum;
    weighted += y_sum;
  }

  // Sums of the whole warp, in every lane.
  __device__ void merge_warp(float factor) {
    float top = origin;
    for (int distance = 16; distance > 0; distance /= 2)
      top = fmaxf(top, __shfl_xor_sync(full_warp, top, distance));
    move_to(top, factor);
    exponentials = warp_sum(exponentials);
    weighted = warp_sum(weighted);
  }

  // Sums of the whole block, in warp 0. A barrier is required between two calls.
  template <int threads>
  __device__ void merge_block(float factor) {
    merge_warp(factor);
    if constexpr (threads > 32) {
      __shared__ SoftmaxPart parts[threads / 32];
      if (lane_index() == 0) parts[warp_index()] = {origin, exponentials, weighted};
      __syncthreads();
      if (warp_index() != 0) return;
      const bool there = lane_index() < threads / 32;
      origin = there ? parts[lane_index()].origin : -INFINITY;
      exponentials = there ? parts[lane_index()].exponentials : 0;
      weighted = there ? parts[lane_index()].weighted : 0;
      merge_warp(factor);
    }
  }

 private:
  struct SoftmaxPart {
    float origin, exponentials, weighted;
  };

  template <int count>
  static __device__ void sum(const float (&z)[count], float origin, float factor, float* e_sum, float* y_sum) {
    *e_sum = *y_sum = 0;
#pragma unroll
    for (int i = 0; i < count; i++) {
      const float y = (z[i] - origin) * factor, e = power_of_2(y);
      *e_sum += e;
      *y_sum += e * fmaxf(y, least_exponent);
    }
  }
};

// Sums of a row that is read from memory, in warp 0. Each thread loads 64 bytes ahead before it uses the first 16. Must be called by all
// threads of a block.
template <int threads, class Logit>
__device__ SoftmaxSums row_sums(int64_t vocab, const Logit* row, float factor) {
  SoftmaxSums sums;
  if (in_packs(vocab, row)) {
    constexpr int size = full_width<Logit>, depth = 4;
    const auto* packs = reinterpret_cast<const LogitPack*>(row);
    const int64_t count = vocab / size;
    // The bound is uniform across the block, so that whole warps enter.
    for (int64_t start = 0; start < count; start += depth * threads) {
      const int64_t first = start + threadIdx.x;
      LogitPack held[depth];
#pragma unroll
      for (int d = 0; d < depth; d++)
        if (first + d * threads < count) held[d] = packs[first + d * threads];
#pragma unroll
      for (int d = 0; d < depth; d++) {
        const bool there = first + d * threads < count;
        float z[size];
        if (there) widen(held[d], z);
        if (d == 0 && start == 0) {
          if (!there)
            for (float& value : z) value = -INFINITY;
          sums.begin(z);
        }
        if (there) sums.add(z, factor);
      }
    }
  } else {
    for (int64_t j = threadIdx.x; j < vocab; j += threads) {
      const float z[1] = {to_float(row[j])};
      sums.add(z, factor);
    }
  }
  sums.merge_block<threads>(factor);
  return sums;
}

struct Score {
  double log_sum, log_prob, entropy;
};

__device__ inline Score score(float token_logit, const SoftmaxSums& sums, double temperature) {
  Score s;
  s.log_sum = log(double(sums.exponentials));
  s.log_prob = (double(token_logit) - double(sums.origin)) / temperature - s.log_sum;
  s.entropy = s.log_sum - ln2 * double(sums.weighted) / double(sums.exponentials);
  return s;
}

__device__ inline float base2_factor(double temperature) { return float(1.4426950408889634074 / temperature); }

}  // namespace gigpo::cuda
