#include "core/kernels/token_log_probs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/row_sweeps.h"

namespace gigpo {

namespace {

using cpu::RowSums;
using cpu::RowSweeps;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Score {
  double log_sum;  // log Σ e^x
  double log_prob, entropy;
};

// With x = (z - max) / T: log p = x_token - log_sum, and H = -Σ p (x - log_sum) = log_sum - Σ e^x x / Σ e^x.
Score score(float token_logit, float max, double temperature, const RowSums& sums) {
  const double log_sum = std::log(sums.exponentials);
  return {log_sum, (double(token_logit) - double(max)) / temperature - log_sum,
          log_sum - sums.weighted / sums.exponentials};
}

void head_row(const RowSweeps& sweeps, int64_t vocab, float* z, const PolicyHeadRow& input,
              const PolicyHeadOptions& options, PolicyHeadResult* result, const HeadTokens& others) {
  const bool training = options.mode != HeadMode::score;
  if (training && input.weight == 0) {
    std::fill(z, z + vocab, 0.0f);
    *result = {};
    return;
  }
  if (input.token < 0 || input.token >= vocab) {
    if (training) std::fill(z, z + vocab, nan);
    else std::fill(others.log_probs, others.log_probs + others.count, nan);
    *result = {.log_prob = nan, .entropy = nan, .loss = nan, .kl = nan, .ratio = nan};
    return;
  }
  const float max = sweeps.max(vocab, z), inverse_temperature = float(1 / options.temperature), chosen = z[input.token];
  // Without an entropy term the gradient is linear in e^x, which is stored in place of the logits until it is scaled.
  const bool keep = training && options.entropy_weight == 0 && !options.has_entropy_gradient;
  const RowSums sums = sweeps.sums(vocab, z, max, inverse_temperature, keep ? z : nullptr);
  const Score s = score(chosen, max, options.temperature, sums);
  const HeadRowGradient g = head_row_loss(s.log_prob, s.entropy, input, options, result);
  if (!training) {
    for (int64_t i = 0; i < others.count; i++)
      others.log_probs[i] = float((double(z[others.tokens[i]]) - double(max)) / options.temperature - s.log_sum);
    return;
  }

  if (keep) {
    sweeps.scale(vocab, z, float(-g.all / sums.exponentials));
  } else {
    // p (-g + c (log p + H)) = e^x (constant + slope x), with log p = x - log_sum
    sweeps.linear(vocab, z, max, inverse_temperature,
                  float((g.entropy * (s.entropy - s.log_sum) - g.all) / sums.exponentials),
                  float(g.entropy / sums.exponentials));
  }
  z[input.token] += float(g.token);
  for (int64_t i = 0; i < others.count; i++)
    if (others.tokens[i] >= 0) z[others.tokens[i]] += float(double(others.gradients[i]) / options.temperature);
}

}  // namespace

void token_log_probs(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                     float* log_probs, float* entropies) {
  const RowSweeps& sweeps = cpu::row_sweeps(cpu::isa());
  for (int64_t row = 0; row < rows; row++) {
    const float* z = logits + row * vocab;
    Score s = {nan, nan, nan};
    if (tokens[row] >= 0 && tokens[row] < vocab) {
      const float max = sweeps.max(vocab, z);
      s = score(z[tokens[row]], max, temperature, sweeps.sums(vocab, z, max, float(1 / temperature), nullptr));
    }
    log_probs[row] = float(s.log_prob);
    if (entropies) entropies[row] = float(s.entropy);
  }
}

void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, const HeadTokens& others) {
  const RowSweeps& sweeps = cpu::row_sweeps(cpu::isa());
  for (int64_t row = 0; row < rows; row++)
    head_row(sweeps, vocab, logits + row * vocab, inputs[row], options, results + row, others.from(row));
}

}  // namespace gigpo
