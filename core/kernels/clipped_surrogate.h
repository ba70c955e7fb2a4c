// PPO's clipped surrogate with dual clip and a KL term to a reference policy, forward and backward. A token is one
// draw of the policy; a row is one reply. `token_loss` is the only place where the formulas stand: this file's CPU
// kernel, the fused head of token_log_probs.h and the CUDA kernels all call it.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/random.h"  // GIGPO_HOST_DEVICE

namespace gigpo {

// Of KL(policy ‖ reference) per token, with d = log p_ref - log p: k1 = -d, k2 = d²/2, k3 = e^d - d - 1, held to 10
// (Schulman, "Approximating KL divergence", 2020), and |d|. With `plus` the value is that one's and the gradient k2's, whose
// expectation is the gradient of the KL, as that of k1's or k3's own derivative is not.
enum class KlEstimator : int32_t { k1, k2, k3, abs, k1_plus, k3_plus };

struct PolicyLossOptions {
  double clip_low = 0.2;   // the ratio is kept above 1 - clip_low
  double clip_high = 0.2;  // and below 1 + clip_high
  double clip_dual = 3;    // with A < 0 the loss is at most -clip_dual · A; infinity turns it off
  double kl_weight = 0;
  KlEstimator kl_estimator = KlEstimator::k3;
};

struct TokenLoss {
  double policy = 0;    // max(-A r, -A clip(r)), under the dual clip
  double kl = 0;        // estimate of KL to the reference; 0 without one
  double gradient = 0;  // d (policy + kl_weight · kl) / d log p
  double ratio = 0;     // r = p / p_old
  bool clipped = false, dual_clipped = false;
};

// Written with comparisons, not fmin and fmax, which would turn a NaN into a bound and hide it.
GIGPO_HOST_DEVICE inline double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Exponents are clamped before exp, so that a policy far from the old one or from the reference gives large numbers,
// never infinite ones. Outside the clamp the value is constant, and so its gradient is 0.
constexpr double max_log_ratio = 20;
// What k3 is held to, with a gradient of 0 above.
constexpr double max_k3 = 10;

struct KlEstimate {
  double value, gradient;  // by log p
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

// `log_ratio` is log p - log p_old of the token, or of its whole row (`RatioLevel::sequence`); either way its
// derivative by the token's log p is taken as 1.
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

// How token losses become one number. Rows without an active token are padding and do not count.
enum class Aggregation : int32_t {
  token_mean,                    // sum over tokens / active tokens
  token_sum,                     // sum over tokens
  sequence_mean_token_sum,       // mean over rows of the row's sum
  sequence_mean_token_mean,      // mean over rows of the row's mean
  sequence_mean_fixed_length,    // sum over tokens / (rows · a length that is given) (Dr. GRPO, arXiv 2503.20783)
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

// Rows lie one after the other; all arrays but row_lengths are [tokens].
struct ClippedSurrogateInput {
  int64_t rows = 0, tokens = 0;
  const int32_t* row_lengths = nullptr;  // [rows], sum = tokens
  const float* log_probs = nullptr;
  const float* old_log_probs = nullptr;
  const float* advantages = nullptr;
  const float* mask = nullptr;                 // not 0 = active
  const float* reference_log_probs = nullptr;  // may be null where kl_weight = 0
};

// `loss`, `policy_loss` and `kl` are aggregated; the rest are means over active tokens. 0 where no token is active.
struct ClippedSurrogateReport {
  double loss = 0;  // policy_loss + kl_weight · kl
  double policy_loss = 0;
  double kl = 0;
  double clip_fraction = 0;       // share of tokens whose clipped term is the larger one, before the dual clip
  double dual_clip_fraction = 0;  // share of tokens that the dual clip holds
  double policy_kl = 0;           // mean of old log p - log p
  double ratio = 0;
  int64_t active = 0;  // tokens with a mask
};

// The weight of one active token of a row in the aggregate: loss = Σ weight · token loss.
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

// Throws BAD_ARGUMENT where the lengths do not sum to `tokens`, a KL weight has no reference, or a fixed length is none.
void check(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options);

// Checks first. `gradient` [tokens] receives d loss / d log_probs, exactly 0 where the mask is 0; null asks for the report alone.
ClippedSurrogateReport clipped_surrogate(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                         float* gradient);
// The same from a CUDA device, of arrays in host memory. Throws Error DEVICE_UNAVAILABLE.
ClippedSurrogateReport clipped_surrogate_on_cuda(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                                 float* gradient);

}  // namespace gigpo
