// Token log-probabilities of core/kernels/token_log_probs.h: one block per row, which is read once (2 bytes per logit
// of bf16, 4 of fp32) by the sums of softmax_sums.cuh.
//
// Bound: an H200 delivers at most 36 bytes per nanosecond to each of its 132 multiprocessors, about 800 ns after the
// request, so about 29 KB per multiprocessor must be in flight at any time. A thread requests 64 bytes at once: 16 KB
// per block of 256, and five blocks per multiprocessor, of which two may wait for memory while others compute or merge.
// A bf16 logit takes an exponential (16 per clock and multiprocessor) and seven other instructions (128 per clock): 8
// clocks for 128 logits, for which memory takes 12.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/softmax_sums.cuh"

namespace gigpo::cuda {

namespace {

constexpr int short_row_threads = 64, long_row_threads = 256;

template <int threads, class Logit>
__global__ __launch_bounds__(threads, 1280 / threads) void token_log_probs_kernel(int64_t vocab, const Logit* logits,
                                                                                  const int32_t* tokens,
                                                                                  double temperature, float* log_probs,
                                                                                  float* entropies) {
  const int64_t row = blockIdx.x;
  const Logit* z = logits + row * vocab;
  const int64_t token = tokens[row];
  const bool known = token >= 0 && token < vocab;  // uniform across the block
  SoftmaxSums sums;
  if (known) sums = row_sums<threads>(vocab, z, base2_factor(temperature));
  if (threadIdx.x != 0) return;
  Score s = {NAN, NAN, NAN};
  if (known) s = score(to_float(z[token]), sums, temperature);
  log_probs[row] = float(s.log_prob);
  if (entropies) entropies[row] = float(s.entropy);
}

template <class Logit>
void launch_token_log_probs(int64_t rows, int64_t vocab, const Logit* logits, const int32_t* tokens, double temperature,
                            float* log_probs, float* entropies, cudaStream_t stream) {
  if (rows == 0) return;
  // Four packs of a row for each thread.
  if (vocab <= int64_t{4 * short_row_threads} * full_width<Logit>)
    launch(token_log_probs_kernel<short_row_threads, Logit>, unsigned(rows), short_row_threads, 0, stream, vocab, logits,
           tokens, temperature, log_probs, entropies);
  else
    launch(token_log_probs_kernel<long_row_threads, Logit>, unsigned(rows), long_row_threads, 0, stream, vocab, logits,
           tokens, temperature, log_probs, entropies);
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

}  // namespace gigpo::cuda
