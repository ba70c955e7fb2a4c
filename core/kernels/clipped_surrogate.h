// PPO's clipped surrogate with dual clip and a KL term to a reference policy, forward and backward. A token is one sampled token, a row
// one completion. `token_loss` is the single implementation of the formulas: the CPU kernel of this file, the fused head of
// token_log_probs.h and the CUDA kernels call it.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/random.h"  // GIGPO_HOST_DEVICE

namespace gigpo {

// Estimators of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1, at most 10
// (Schulman, "Approximating KL divergence", 2020), and abs = |d|. `k1_plus` and `k3_plus` have the value of k1 or k3 and the gradient of k2.
// The expectation of the gradient of k2 is the gradient of the KL divergence; for the derivatives of k1 and k3 this does not hold.
enum class KlEstimator : int32_t { k1, k2, k3, abs, k1_plus, k3_plus };

struct PolicyLossOptions {
  double clip_low = 0.2;   // lower bound of the ratio: 1 - clip_low
  double clip_high = 0.2;  // upper bound of the ratio: 1 + clip_high
  double clip_dual = 3;    // for A < 0 the loss is at most -clip_dual · A; infinity disables the dual clip
  double kl_weight = 0;
  KlEstimator kl_estimator = KlEstimator::k3;
};

struct TokenLoss {
  double policy = 0;    // max(-A r, -A clip(r)), bounded by the dual clip
  double kl = 0;        // estimate of KL to the reference; 0 without one
  double gradient = 0;  // d (policy + kl_weight · kl) / d log p
  double ratio = 0;     // r = p / p_old
  bool clipped = false, dual_clipped = false;
};

// Clamps x to [low, high]; NaN stays NaN. fmin and fmax would replace a NaN by a bound.
GIGPO_HOST_DEVICE inline double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Bound of exponents before exp, so that a policy far from the old or the reference policy gives large but finite numbers. Outside the
// bound the value is constant and the gradient 0.
constexpr double max_log_ratio = 20;
// Upper bound of k3; the gradient is 0 above.
constexpr double max_k3 = 10;

struct KlEstimate {
  double value, gradient;  // gradient with respect to log p
};

GIGPO_HOST_DEVICE inline KlEstimate kl_estimate(double d, KlEstimator estimator) {
  switch (estimator) {
    case KlEstimator::k1: return {-d, 1};
    case KlEstimator::k2: return {d * d / 2, -d};
    case KlEstimator::abs: return {fabs(d), d > 0 ? -1.0 : d < 0 ? 1.0 : 0.0};
    case KlEstimator::k1_plus: return {-d, -d};
    default: break;
  }
  const double bound = clamp(d, -max_log_ratio, max_log_ratio), growth = expm1(bound);
  const KlEstimate k3 = growth - bound > max_k3 ? KlEstimate{max_k3, 0} : KlEstimate{growth - bound, -growth};
  return {k3.value, estimator == KlEstimator::k3_plus ? -d : k3.gradient};
}

// Loss of one token. `log_ratio` is log p - log p_old of the token, or of the whole row (`RatioLevel::sequence`). In both cases its
// derivative with respect to the token's log p is taken as 1.
GIGPO_HOST_DEVICE inline TokenLoss token_loss(double log_prob, double log_ratio, double advantage, bool has_reference,
                                              double reference_log_prob, const PolicyLossOptions& options) {
  TokenLoss token;
  token.ratio = exp(clamp(log_ratio, -max_log_ratio, max_log_ratio));
  const bool saturated = log_ratio < -max_log_ratio || log_ratio > max_log_ratio;
  const double plain = -advantage * token.ratio;
  const double bounded = -advantage * clamp(token.ratio, 1 - options.clip_low, 1 + options.clip_high);
  token.clipped = bounded > plain;
  token.policy = token.clipped ? bounded : plain;
  // Dual clip (Ye et al., AAAI 2020, eq. 5).
  token.dual_clipped = advantage < 0 && token.policy > -options.clip_dual * advantage;
  if (token.dual_clipped) token.policy = -options.clip_dual * advantage;
  token.gradient = token.clipped || token.dual_clipped || saturated ? 0 : plain;  // dr / d log p = r
  if (!has_reference) return token;

  const KlEstimate kl = kl_estimate(reference_log_prob - log_prob, options.kl_estimator);
  token.kl = kl.value;
  if (options.kl_weight != 0) token.gradient += options.kl_weight * kl.gradient;
  return token;
}

// Aggregation of token losses. Rows without an active token are padding and do not count.
enum class Aggregation : int32_t {
  token_mean,                    // sum over tokens / active tokens
  token_sum,                     // sum over tokens
  sequence_mean_token_sum,       // mean over rows of the row's sum
  sequence_mean_token_mean,      // mean over rows of the row's mean
  sequence_mean_fixed_length,    // sum over tokens / (rows · fixed_length) (Dr. GRPO, arXiv 2503.20783)
  sequence_mean_token_sum_norm,  // sum over tokens / length of the longest row
};

enum class RatioLevel : int32_t {
  token,     // p / p_old of each token
  sequence,  // GSPO (arXiv 2507.18071): the geometric mean over the row's active tokens, one ratio for all of them
};

struct ClippedSurrogateOptions : PolicyLossOptions {
  Aggregation aggregation = Aggregation::token_mean;
  int64_t fixed_length = 0;  // sequence_mean_fixed_length only
  RatioLevel ratio = RatioLevel::token;
};

// Normalisation of the loss: `weight` is the weight of one active token of a row, with loss = Σ weight · token loss.
struct Normalizer {
  int64_t tokens = 0, rows = 0, longest = 0;  // active tokens, rows with one, and the longest such row

  GIGPO_HOST_DEVICE double weight(Aggregation aggregation, int64_t fixed_length, int64_t row_active) const {
    if (row_active == 0) return 0;
    switch (aggregation) {
      case Aggregation::token_mean: return 1.0 / double(tokens);
      case Aggregation::token_sum: return 1;
      case Aggregation::sequence_mean_token_sum: return 1.0 / double(rows);
      case Aggregation::sequence_mean_token_mean: return 1.0 / (double(rows) * double(row_active));
      case Aggregation::sequence_mean_fixed_length: return 1.0 / (double(rows) * double(fixed_length));
      case Aggregation::sequence_mean_token_sum_norm: return 1.0 / double(longest);
    }
    return 0;
  }
};

// Inputs of clipped_surrogate. Rows are concatenated; all arrays except row_lengths are [tokens].
struct ClippedSurrogateInput {
  int64_t rows = 0, tokens = 0;
  const int32_t* row_lengths = nullptr;  // [rows], sum = tokens
  const float* log_probs = nullptr;
  const float* old_log_probs = nullptr;
  const float* advantages = nullptr;
  const float* mask = nullptr;                 // nonzero: active token
  const float* reference_log_probs = nullptr;  // may be null if kl_weight = 0
  std::optional<Normalizer> normalizer = {};   // that of a larger batch, of which the active tokens are a part
};

// Report of clipped_surrogate. `loss`, `policy_loss` and `kl` are aggregated; the others are means over active tokens, 0 without any.
struct ClippedSurrogateReport {
  double loss = 0;  // policy_loss + kl_weight · kl
  double policy_loss = 0;
  double kl = 0;
  double clip_fraction = 0;       // share of tokens whose clipped term is the larger one, before the dual clip
  double dual_clip_fraction = 0;  // share of tokens whose loss is bounded by the dual clip
  double policy_kl = 0;           // mean of old log p - log p
  double ratio = 0;
  int64_t active = 0;  // number of active tokens
};

// Normalizer of the active tokens.
Normalizer normalizer_of(const ClippedSurrogateInput& input);

// Throws Error BAD_ARGUMENT if the lengths do not sum to `tokens`, if a KL weight has no reference, or if a required fixed length is invalid.
void check(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options);

// Checks the input and computes the loss. `gradient` [tokens] receives d loss / d log_probs, exactly 0 where the mask is 0; null: not computed.
ClippedSurrogateReport clipped_surrogate(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                         float* gradient);
// Like clipped_surrogate, computed on a CUDA device; all arrays are in host memory. Throws Error DEVICE_UNAVAILABLE.
ClippedSurrogateReport clipped_surrogate_on_cuda(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                                 float* gradient);

}  // namespace gigpo
