// Token log-probabilities and the fused head of core/kernels/token_log_probs.h. One block a row. Each thread keeps the
// maximum it has seen and sums relative to it, so one pass over the row gives log p and the entropy; the gradient takes
// a second pass, in place. Exponents are of base 2 until the end: y = (z - max) log2(e) / T.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/reduce.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 512;

// 16 bytes of a row.
template <class Logit>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(Logit);
  Logit values[size];
};

__device__ float to_float(float value) { return value; }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void assign(float* to, float value) { *to = value; }
__device__ void assign(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

template <class Logit>
__device__ bool in_packs(int64_t vocab, const Logit* row) {
  return vocab % Pack<Logit>::size == 0 && reinterpret_cast<uintptr_t>(row) % 16 == 0;
}

// The softmax sums of part of a row. Empty parts have max = -inf and sums of 0.
struct Sums {
  float max = -INFINITY, exponentials = 0, weighted = 0;  // Σ 2^y, Σ 2^y y

  __device__ void move_to(float new_max, float factor) {
    if (exponentials != 0) {  // else there is nothing to scale, and -inf - -inf would make a NaN
      const float shift = (max - new_max) * factor, scale = exp2f(shift);
      weighted = scale * (weighted + exponentials * shift);
      exponentials *= scale;
    }
    max = new_max;
  }

  template <int count>
  __device__ void add(const float (&z)[count], float factor) {
    float top = z[0];
#pragma unroll
    for (int i = 1; i < count; i++) top = fmaxf(top, z[i]);  // passes over NaN; it shows in the sums
    if (top > max) move_to(top, factor);
    const float origin = max == -INFINITY ? 0 : max;  // only impossible tokens so far
#pragma unroll
    for (int i = 0; i < count; i++) {
      const float y = (z[i] - origin) * factor, e = exp2f(y);
      exponentials += e;
      weighted += e * fmaxf(y, -150.0f);  // 2^y is 0 there, and 0 · -inf would be NaN
    }
  }

  __device__ void merge(Sums other, float factor) {
    const float top = fmaxf(max, other.max);
    move_to(top, factor);
    other.move_to(top, factor);
    exponentials += other.exponentials;
    weighted += other.weighted;
  }
};

__device__ Sums merge_warp(Sums sums, float factor) {
  for (int distance = 16; distance > 0; distance /= 2) {
    Sums other;
    other.max = __shfl_xor_sync(full_warp, sums.max, distance);
    other.exponentials = __shfl_xor_sync(full_warp, sums.exponentials, distance);
    other.weighted = __shfl_xor_sync(full_warp, sums.weighted, distance);
    sums.merge(other, factor);
  }
  return sums;
}

// The whole row's sums, valid in thread 0 only. Called once by all threads of a block.
template <class Logit>
__device__ Sums row_sums(int64_t vocab, const Logit* row, float factor) {
  Sums sums;
  if (in_packs(vocab, row)) {
    constexpr int size = Pack<Logit>::size;
    const auto* packs = reinterpret_cast<const Pack<Logit>*>(row);
    for (int64_t i = threadIdx.x; i < vocab / size; i += threads) {
      const Pack<Logit> pack = packs[i];
      float z[size];
#pragma unroll
      for (int k = 0; k < size; k++) z[k] = to_float(pack.values[k]);
      sums.add(z, factor);
    }
  } else {
    for (int64_t j = threadIdx.x; j < vocab; j += threads) {
      const float z[1] = {to_float(row[j])};
      sums.add(z, factor);
    }
  }
  __shared__ float max[threads / 32], exponentials[threads / 32], weighted[threads / 32];
  sums = merge_warp(sums, factor);
  if (lane_index() == 0) {
    max[warp_index()] = sums.max;
    exponentials[warp_index()] = sums.exponentials;
    weighted[warp_index()] = sums.weighted;
  }
  __syncthreads();
  if (warp_index() == 0) {
    sums = Sums();
    if (lane_index() < threads / 32) {
      sums.max = max[lane_index()];
      sums.exponentials = exponentials[lane_index()];
      sums.weighted = weighted[lane_index()];
    }
    sums = merge_warp(sums, factor);
  }
  return sums;
}

struct Score {
  double log_sum, log_prob, entropy;
};

__device__ Score score(float token_logit, const Sums& sums, double temperature) {
  constexpr double ln2 = 0.69314718055994530942;
  Score s;
  s.log_sum = log(double(sums.exponentials));
  s.log_prob = (double(token_logit) - double(sums.max)) / temperature - s.log_sum;
  s.entropy = s.log_sum - ln2 * double(sums.weighted) / double(sums.exponentials);
  return s;
}

__device__ float base2_factor(double temperature) { return float(1.4426950408889634074 / temperature); }

template <class Logit>
__global__ __launch_bounds__(threads) void token_log_probs_kernel(int64_t vocab, const Logit* logits,
                                                                  const int32_t* tokens, double temperature,
                                                                  float* log_probs, float* entropies) {
  const int64_t row = blockIdx.x;
  const Logit* z = logits + row * vocab;
  const int64_t token = tokens[row];
  const bool known = token >= 0 && token < vocab;  // the same for the whole block
  Sums sums;
  if (known) sums = row_sums(vocab, z, base2_factor(temperature));
  if (threadIdx.x != 0) return;
  Score s = {NAN, NAN, NAN};
  if (known) s = score(to_float(z[token]), sums, temperature);
  log_probs[row] = float(s.log_prob);
  if (entropies) entropies[row] = float(s.entropy);
}

// What a row's threads need for its gradient: z_j becomes 2^y (constant + slope y), plus `token` at the chosen token.
struct RowGradient {
  float max, constant, slope, token;
};

template <class Logit>
__device__ void fill_row(int64_t vocab, Logit* z, float value) {
  for (int64_t j = threadIdx.x; j < vocab; j += threads) assign(z + j, value);
}

template <class Logit>
__device__ void write_gradient(int64_t vocab, Logit* z, int64_t token, const RowGradient& g, float factor) {
  const auto gradient = [&](float logit, int64_t j) {
    const float y = (logit - g.max) * factor;
    const float value = exp2f(y) * (g.constant + g.slope * fmaxf(y, -150.0f));
    return j == token ? value + g.token : value;
  };
  if (in_packs(vocab, z)) {
    constexpr int size = Pack<Logit>::size;
    auto* packs = reinterpret_cast<Pack<Logit>*>(z);
    for (int64_t i = threadIdx.x; i < vocab / size; i += threads) {
      Pack<Logit> pack = packs[i];
#pragma unroll
      for (int k = 0; k < size; k++) assign(&pack.values[k], gradient(to_float(pack.values[k]), i * size + k));
      packs[i] = pack;
    }
  } else {
    for (int64_t j = threadIdx.x; j < vocab; j += threads) assign(z + j, gradient(to_float(z[j]), j));
  }
}

template <class Logit>
__global__ __launch_bounds__(threads) void policy_head_kernel(int64_t vocab, Logit* logits, const PolicyHeadRow* inputs,
                                                              PolicyHeadOptions options, PolicyHeadResult* results) {
  const int64_t row = blockIdx.x;
  Logit* z = logits + row * vocab;
  const PolicyHeadRow input = inputs[row];
  const bool training = options.mode != HeadMode::score;
  // Both conditions are the same for the whole block.
  if (training && input.weight == 0) {
    fill_row(vocab, z, 0);
    if (threadIdx.x == 0) results[row] = PolicyHeadResult();
    return;
  }
  if (input.token < 0 || input.token >= vocab) {
    if (training) fill_row(vocab, z, NAN);
    if (threadIdx.x == 0) {
      PolicyHeadResult result;
      result.log_prob = result.entropy = result.loss = result.kl = result.ratio = NAN;
      results[row] = result;
    }
    return;
  }
  const float factor = base2_factor(options.temperature);
  const Sums sums = row_sums(vocab, z, factor);
  __shared__ RowGradient gradient;
  if (threadIdx.x == 0) {
    const Score s = score(to_float(z[input.token]), sums, options.temperature);
    PolicyHeadResult result;
    const HeadRowGradient g = head_row_loss(s.log_prob, s.entropy, input, options, &result);
    results[row] = result;
    // p (-g + c (log p + H)), with log p = y ln 2 - log_sum
    const double sum = double(sums.exponentials);
    gradient.max = sums.max;
    gradient.constant = float((g.entropy * (s.entropy - s.log_sum) - g.token) / sum);
    gradient.slope = float(g.entropy * 0.69314718055994530942 / sum);
    gradient.token = float(g.token);
  }
  if (!training) return;
  __syncthreads();  // thread 0 has read the chosen logit: from here on logits may be overwritten
  write_gradient(vocab, z, input.token, gradient, factor);
}

template <class Logit>
void launch_token_log_probs(int64_t rows, int64_t vocab, const Logit* logits, const int32_t* tokens, double temperature,
                            float* log_probs, float* entropies, cudaStream_t stream) {
  if (rows == 0) return;
  launch(token_log_probs_kernel<Logit>, unsigned(rows), threads, 0, stream, vocab, logits, tokens, temperature, log_probs,
         entropies);
}

template <class Logit>
void launch_policy_head(int64_t rows, int64_t vocab, Logit* logits, const PolicyHeadRow* inputs,
                        const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream) {
  if (rows == 0) return;
  launch(policy_head_kernel<Logit>, unsigned(rows), threads, 0, stream, vocab, logits, inputs, options, results);
}

}  // namespace

void token_log_probs(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                     float* log_probs, float* entropies, cudaStream_t stream) {
  launch_token_log_probs(rows, vocab, logits, tokens, temperature, log_probs, entropies, stream);
}

void token_log_probs(int64_t rows, int64_t vocab, const __nv_bfloat16* logits, const int32_t* tokens,
                     double temperature, float* log_probs, float* entropies, cudaStream_t stream) {
  launch_token_log_probs(rows, vocab, logits, tokens, temperature, log_probs, entropies, stream);
}

void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream) {
  launch_policy_head(rows, vocab, logits, inputs, options, results, stream);
}

void policy_head_chunk(int64_t rows, int64_t vocab, __nv_bfloat16* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream) {
  launch_policy_head(rows, vocab, logits, inputs, options, results, stream);
}

}  // namespace gigpo::cuda
