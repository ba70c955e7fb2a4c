// Log-probabilities of chosen tokens from a language model's logits, without ever storing a softmax, and the same
// fused with the loss: the logits of one chunk of rows are overwritten by their gradient, so that
// [tokens][vocab] never exists as a whole.
//
//   p = softmax(z / T),  H = -Σ p log p,  row loss = weight · (loss(log p_token) - entropy_weight · H)
//   d row loss / d z_j = [ g · (1{j = token} - p_j) + c · p_j · (log p_j + H) ] / T
//   with g = weight · d loss / d log p_token, c = -d row loss / d H = weight · entropy_weight.
// A loss may also have gradients g_i by the log-probabilities of other tokens t_i: Σ_i g_i (1{j = t_i} - p_j) / T more.
//
// Rows are independent and each is computed the same way wherever it stands: callers may split them as they like.
// Non-finite logits give NaN results, for the caller to find; a logit of minus infinity is a token of probability 0.
#pragma once
#include <cstdint>

#include "core/kernels/clipped_surrogate.h"

namespace gigpo {

// logits [rows][vocab], tokens [rows] -> log_probs [rows], entropies [rows] in nats (may be null).
// A token outside the vocabulary gives NaN.
void token_log_probs(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                     float* log_probs, float* entropies);
// The same from a CUDA device, of arrays in host memory; `entropies` may not be null. Throws Error DEVICE_UNAVAILABLE.
void token_log_probs_on_cuda(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                             float* log_probs, float* entropies);

enum class HeadMode : int32_t {
  score,   // log p and entropy only: logits are left as they are, and weights do not matter
  policy,  // the clipped surrogate with its KL term
  sft,     // -log p: supervised fine-tuning
  linear,  // any other loss: PolicyHeadRow::gradient is g itself, the weight not applied again; entropy_gradient is added to -c
};

struct PolicyHeadOptions {
  HeadMode mode = HeadMode::policy;
  double temperature = 1;
  double entropy_weight = 0;
  bool has_reference = false;         // PolicyHeadRow::reference_log_prob is given
  bool has_entropy_gradient = false;  // HeadMode::linear only: PolicyHeadRow::entropy_gradient is given
  PolicyLossOptions loss;
};

// What the loss knows of one token. A weight of 0 masks the row: its gradient and its result are exactly 0 whatever
// else it holds.
struct PolicyHeadRow {
  int32_t token = 0;
  float weight = 0;  // of this token in the loss, the aggregation folded in, e.g. 1 / tokens of the whole batch
  float advantage = 0;
  float old_log_prob = 0;
  float reference_log_prob = 0;
  float gradient = 0;          // HeadMode::linear only, as is the next
  float entropy_gradient = 0;  // d loss / d H of this token
  float others_gradient = 0;   // the sum of HeadTokens::gradients
};

// Other tokens than the sampled ones, as many in each row: arrays [rows][count]. None where `count` is 0.
struct HeadTokens {
  int64_t count = 0;
  const int32_t* tokens = nullptr;   // of the vocabulary, but where there is a gradient: none that is there twice, and -1 for none
  const float* gradients = nullptr;  // HeadMode::linear: d loss / d log p of each, as PolicyHeadRow::gradient is
  float* log_probs = nullptr;        // HeadMode::score: receives log p of each. HeadMode::linear: memory to work in

  // Those of the rows from `row` on.
  GIGPO_HOST_DEVICE HeadTokens from(int64_t row) const {
    const int64_t at = row * count;
    return {count, tokens + at, gradients ? gradients + at : nullptr, log_probs + at};
  }
};

// Terms of one row, before its weight.
struct PolicyHeadResult {
  float log_prob = 0;
  float entropy = 0;
  float loss = 0;   // policy or cloning loss; 0 in the other modes
  float kl = 0;     // estimate of KL to the reference policy; 0 without a reference
  float ratio = 0;  // policy mode only, as are the next two
  int16_t clipped = 0, dual_clipped = 0;
};

// logits [rows][vocab] -> d loss / d logits, in place (but see HeadMode::score); inputs, results [rows].
void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, const HeadTokens& others = {});

// What a batch reports, summed over chunks on the host. Means are these sums over `tokens`.
struct PolicyHeadSums {
  double loss = 0;  // already weighted
  double entropy = 0, kl = 0, ratio = 0, policy_kl = 0;
  int64_t tokens = 0, clipped = 0, dual_clipped = 0;

  void add(const PolicyHeadRow& row, const PolicyHeadResult& result, const PolicyHeadOptions& options) {
    if (row.weight == 0) return;
    const double kl_loss = options.loss.kl_weight != 0 ? options.loss.kl_weight * result.kl : 0;
    loss += row.weight * (result.loss + kl_loss - options.entropy_weight * result.entropy);
    entropy += result.entropy;
    kl += result.kl;
    ratio += result.ratio;
    if (options.mode == HeadMode::policy) policy_kl += double(row.old_log_prob) - double(result.log_prob);
    tokens++;
    clipped += result.clipped;
    dual_clipped += result.dual_clipped;
  }
};

// Everything about one row but the sweeps over its vocabulary, shared by the CPU and the CUDA kernel.
struct HeadRowGradient {
  double token = 0;    // g / T
  double all = 0;      // the same with those of other tokens: (g + Σ g_i) / T
  double entropy = 0;  // c / T
};

GIGPO_HOST_DEVICE inline HeadRowGradient head_row_loss(double log_prob, double entropy, const PolicyHeadRow& row,
                                                       const PolicyHeadOptions& options, PolicyHeadResult* result) {
  PolicyHeadResult out;
  out.log_prob = float(log_prob);
  out.entropy = float(entropy);
  double g = 0, c = double(row.weight) * options.entropy_weight;
  if (options.mode == HeadMode::policy) {
    const TokenLoss token = token_loss(log_prob, log_prob - double(row.old_log_prob), row.advantage,
                                       options.has_reference, row.reference_log_prob, options.loss);
    out.loss = float(token.policy);
    out.kl = float(token.kl);
    out.ratio = float(token.ratio);
    out.clipped = token.clipped;
    out.dual_clipped = token.dual_clipped;
    g = double(row.weight) * token.gradient;
  } else if (options.mode == HeadMode::sft) {
    out.loss = float(-log_prob);
    g = -double(row.weight);
  } else if (options.mode == HeadMode::linear) {
    g = row.gradient;
    if (options.has_entropy_gradient) c -= double(row.entropy_gradient);
  }
  *result = out;
  const double others = options.mode == HeadMode::linear ? double(row.others_gradient) : 0;
  return {g / options.temperature, (g + others) / options.temperature, c / options.temperature};
}

}  // namespace gigpo
