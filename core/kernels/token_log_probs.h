// Log-probabilities of given tokens from the logits of a language model, without storing a softmax, alone and fused with the loss. With a
// loss, the logits of one chunk of rows are overwritten by their gradient, so that [tokens][vocab] never exists as a whole.
//
//   p = softmax(z / T),  H = -Σ p log p,  row loss = weight · (loss(log p_token) - entropy_weight · H)
//   d row loss / d z_j = [ g · (1{j = token} - p_j) + c · p_j · (log p_j + H) ] / T
//   with g = weight · d loss / d log p_token, c = -d row loss / d H = weight · entropy_weight.
// A loss may also have gradients g_i for the log-probabilities of other tokens t_i, which add Σ_i g_i (1{j = t_i} - p_j) / T.
//
// Rows are independent, and the result of a row does not depend on its position: callers may split rows in any way. Non-finite logits give
// NaN results, which the caller must check; the token of a logit of minus infinity has probability 0.
#pragma once
#include <cstdint>

#include "core/kernels/clipped_surrogate.h"

namespace gigpo {

// logits [rows][vocab], tokens [rows] -> log_probs [rows], entropies [rows] in nats (may be null).
// A token outside the vocabulary gives NaN.
void token_log_probs(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                     float* log_probs, float* entropies);
// Like token_log_probs, computed on a CUDA device; all arrays are in host memory. `entropies` must not be null. Throws Error
// DEVICE_UNAVAILABLE.
void token_log_probs_on_cuda(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                             float* log_probs, float* entropies);

enum class HeadMode : int32_t {
  score,   // log p and entropy only: logits are unchanged, weights are ignored
  policy,  // the clipped surrogate with its KL term
  sft,     // -log p: supervised fine-tuning
  linear,  // any other loss: PolicyHeadRow::gradient is g itself, already weighted; entropy_gradient is subtracted from c
};

struct PolicyHeadOptions {
  HeadMode mode = HeadMode::policy;
  double temperature = 1;
  double entropy_weight = 0;
  bool has_reference = false;         // PolicyHeadRow::reference_log_prob is given
  bool has_entropy_gradient = false;  // HeadMode::linear only: PolicyHeadRow::entropy_gradient is given
  PolicyLossOptions loss;
};

// Inputs of the loss for one token. A weight of 0 masks the row: gradient and result are exactly 0 whatever the other values are.
struct PolicyHeadRow {
  int32_t token = 0;
  float weight = 0;  // weight of this token in the loss, including the aggregation, e.g. 1 / tokens of the whole batch
  float advantage = 0;
  float old_log_prob = 0;
  float reference_log_prob = 0;
  float gradient = 0;          // d loss / d log p of this token; like entropy_gradient, HeadMode::linear only
  float entropy_gradient = 0;  // d loss / d H of this token
  float others_gradient = 0;   // sum of HeadTokens::gradients of the row
};

// Tokens other than the sampled ones, the same number in each row: arrays [rows][count]. `count` = 0: none.
struct HeadTokens {
  int64_t count = 0;
  const int32_t* tokens = nullptr;   // token ids; with gradients, unique within a row and -1 for none
  const float* gradients = nullptr;  // HeadMode::linear: d loss / d log p of each token, already weighted
  float* log_probs = nullptr;        // HeadMode::score: receives log p of each token. HeadMode::linear: scratch memory

  // Tokens of the rows from `row` on.
  GIGPO_HOST_DEVICE HeadTokens from(int64_t row) const {
    const int64_t at = row * count;
    return {count, tokens + at, gradients ? gradients + at : nullptr, log_probs + at};
  }
};

// Loss terms of one row, before multiplication by the weight.
struct PolicyHeadResult {
  float log_prob = 0;
  float entropy = 0;
  float loss = 0;   // policy or SFT loss; 0 in the other modes
  float kl = 0;     // estimate of KL to the reference policy; 0 without a reference
  float ratio = 0;  // HeadMode::policy only, like `clipped` and `dual_clipped`
  int16_t clipped = 0, dual_clipped = 0;
};

// Replaces logits [rows][vocab] by d loss / d logits, except in HeadMode::score; inputs, results [rows].
void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, const HeadTokens& others = {});

// Sums of the results of a batch, accumulated over chunks on the host. Means are these sums divided by `tokens`.
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

// Coefficients of the gradient of one row. head_row_loss computes everything except the loops over the vocabulary, for CPU and CUDA.
struct HeadRowGradient {
  double token = 0;    // g / T
  double all = 0;      // (g + Σ g_i) / T, including other tokens
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
