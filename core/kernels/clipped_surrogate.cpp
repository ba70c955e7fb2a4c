#include "core/kernels/clipped_surrogate.h"

#include <algorithm>

#include "core/error.h"

namespace gigpo {

static int64_t active_tokens(const float* mask, int64_t length) {
  return std::count_if(mask, mask + length, [](float m) { return m != 0; });
}

Normalizer normalizer_of(const ClippedSurrogateInput& input) {
  Normalizer total;
  int64_t start = 0;
  for (int64_t row = 0; row < input.rows; row++) {
    const int64_t length = input.row_lengths[row];
    if (const int64_t active = active_tokens(input.mask + start, length)) {
      total.tokens += active;
      total.rows++;
      total.longest = std::max(total.longest, length);
    }
    start += length;
  }
  return total;
}

void check(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options) {
  if (options.kl_weight != 0 && !input.reference_log_probs)
    throw Error("BAD_ARGUMENT", "a KL weight needs the reference policy's log-probabilities");
  if (options.aggregation == Aggregation::sequence_mean_fixed_length && options.fixed_length < 1)
    throw Error("BAD_ARGUMENT", "a mean over a fixed length needs one of at least 1");
  int64_t start = 0;
  for (int64_t row = 0; row < input.rows; row++) {
    const int64_t length = input.row_lengths[row];
    if (length < 0 || length > input.tokens - start)
      throw Error("BAD_ARGUMENT", "the row lengths must not be negative and must sum to the number of tokens");
    start += length;
  }
  if (start != input.tokens) throw Error("BAD_ARGUMENT", "the row lengths must sum to the number of tokens");
}

ClippedSurrogateReport clipped_surrogate(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                         float* gradient) {
  check(input, options);
  const bool has_reference = input.reference_log_probs != nullptr;
  const Normalizer own = normalizer_of(input), total = input.normalizer.value_or(own);
  ClippedSurrogateReport report;
  report.active = own.tokens;
  if (gradient) std::fill(gradient, gradient + input.tokens, 0.0f);
  if (own.tokens == 0) return report;

  int64_t start = 0;
  for (int64_t row = 0; row < input.rows; row++) {
    const int64_t end = start + input.row_lengths[row];
    const int64_t active = active_tokens(input.mask + start, end - start);
    const double weight = total.weight(options.aggregation, options.fixed_length, active);
    double shift = 0;  // Σ log p - log p_old over the row's active tokens
    for (int64_t t = start; t < end; t++)
      if (input.mask[t] != 0) shift += double(input.log_probs[t]) - double(input.old_log_probs[t]);
    report.policy_kl -= shift;

    for (int64_t t = start; t < end; t++) {
      if (input.mask[t] == 0) continue;  // values of masked tokens are not read
      const double log_prob = input.log_probs[t];
      const double log_ratio =
          options.ratio == RatioLevel::sequence ? shift / double(active) : log_prob - double(input.old_log_probs[t]);
      const TokenLoss token = token_loss(log_prob, log_ratio, input.advantages[t], has_reference,
                                         has_reference ? input.reference_log_probs[t] : 0, options);
      report.policy_loss += weight * token.policy;
      report.kl += weight * token.kl;
      report.ratio += token.ratio;
      report.clip_fraction += token.clipped;
      report.dual_clip_fraction += token.dual_clipped;
      if (gradient) gradient[t] = float(weight * token.gradient);
    }
    start = end;
  }
  report.loss = report.policy_loss + (options.kl_weight != 0 ? options.kl_weight * report.kl : 0);
  for (double* mean : {&report.clip_fraction, &report.dual_clip_fraction, &report.policy_kl, &report.ratio})
    *mean /= double(own.tokens);
  return report;
}

}  // namespace gigpo
