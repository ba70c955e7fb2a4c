// The most likely tokens of some rows: Device::top_tokens. A block reads its row once for the sums, and once per token:
// the best of those after the previous one. That is twenty times 600 KB from the L2 cache, paid only by requests with
// top log-probabilities.
#include "core/kernels/top_tokens.h"
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/softmax_sums.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 1024;

struct Candidate {
  float logit = -INFINITY;
  int32_t token = INT32_MAX;

  // Whether this one ranks before another: of equal logits the lower token does.
  __device__ bool before(Candidate other) const { return logit > other.logit || (logit == other.logit && token < other.token); }
};

__device__ Candidate best_of_warp(Candidate best) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const Candidate other = {__shfl_xor_sync(full_warp, best.logit, distance), __shfl_xor_sync(full_warp, best.token, distance)};
    if (other.before(best)) best = other;
  }
  return best;
}

// Best candidate of the block, returned to all threads.
__device__ Candidate best_of_block(Candidate best) {
  __shared__ float logits[32];
  __shared__ int32_t tokens[32];
  best = best_of_warp(best);
  __syncthreads();  // the last call's values have been read
  if (lane_index() == 0) logits[warp_index()] = best.logit, tokens[warp_index()] = best.token;
  __syncthreads();
  best = {};
  if (lane_index() < warps_in_block()) best = {logits[lane_index()], tokens[lane_index()]};
  return best_of_warp(best);
}

template <class Logit>
__global__ void __launch_bounds__(threads)
top_tokens_kernel(int32_t vocab, const Logit* logits, int64_t stride, SampleInputs inputs, int64_t most, int32_t* tokens, float* log_probs) {
  const int64_t r = blockIdx.x;
  const int32_t count = inputs.top[r];
  if (count == 0) return;
  const Logit* row = logits + r * stride;
  const double temperature = inputs.temperatures[r] == 0 ? 1 : double(inputs.temperatures[r]);
  const SoftmaxSums sums = row_sums<threads>(vocab, row, base2_factor(temperature));  // in warp 0
  Candidate last = {INFINITY, -1};
  for (int32_t i = 0; i < count; i++) {
    Candidate mine;
    for (int32_t token = int32_t(threadIdx.x); token < vocab; token += threads) {
      const Candidate next = {to_float(row[token]), token};
      if (is_possible(next.logit) && last.before(next) && next.before(mine)) mine = next;
    }
    last = best_of_block(mine);
    if (threadIdx.x != 0) continue;
    const bool there = last.logit > -INFINITY;
    tokens[r * most + i] = there ? last.token : no_token;
    log_probs[r * most + i] = there ? float(score(last.logit, sums, temperature).log_prob) : -INFINITY;
  }
}

}  // namespace

void top_tokens(Tensor logits, const SampleInputs& inputs, int64_t most, int32_t* tokens, float* log_probs, cudaStream_t stream) {
  if (logits.rows == 0) return;
  with_type(logits.type, [&](auto tag) {
    using Logit = typename decltype(tag)::type;
    launch(top_tokens_kernel<Logit>, dim3(unsigned(logits.rows)), dim3(threads), 0, stream, int32_t(logits.columns),
           static_cast<const Logit*>(logits.data), logits.stride, inputs, most, tokens, log_probs);
  });
}

}  // namespace gigpo::cuda
