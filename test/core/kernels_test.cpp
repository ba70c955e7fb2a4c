// Token log-probabilities, the fused head and the clipped surrogate on the CPU against double precision, on every
// instruction set of this machine. (The third named kernel is in anchor_groups_test.cpp.)
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/kernels/clipped_surrogate.h"
#include "core/kernels/hellinger.h"
#include "core/kernels/token_log_probs.h"
#include "core/kernels/top_tokens.h"
#include "core/random.h"
#include "test/core/check.h"
#include "test/core/each_isa.h"

using namespace gigpo;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

uint32_t random_word(uint32_t stream, uint32_t i) { return philox({17, 4}, i, stream, 0, 0).word[0]; }

// Normal random number with this standard deviation (Box-Muller).
float normal(uint32_t stream, uint32_t i, double deviation) {
  const Philox words = philox({5, 9}, i, stream, 0, 0);
  return float(deviation * std::sqrt(-2 * std::log(double(open_uniform(words.word[0])))) *
               std::cos(6.283185307179586 * double(open_uniform(words.word[1]))));
}

std::vector<float> random_logits(uint32_t stream, int64_t count, double deviation) {
  std::vector<float> logits(static_cast<size_t>(count));
  for (size_t i = 0; i < logits.size(); i++) logits[i] = normal(stream, uint32_t(i), deviation);
  return logits;
}

bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// log p of every token of softmax(z / T).
std::vector<double> log_softmax(const std::vector<double>& z, double temperature) {
  double max = -inf, sum = 0;
  for (const double logit : z) max = std::max(max, logit);
  for (const double logit : z) sum += std::exp((logit - max) / temperature);
  std::vector<double> log_probs;
  for (const double logit : z) log_probs.push_back((logit - max) / temperature - std::log(sum));
  return log_probs;
}

double entropy_of(const std::vector<double>& log_probs) {
  double entropy = 0;
  for (const double log_prob : log_probs)
    if (log_prob > -inf) entropy -= std::exp(log_prob) * log_prob;
  return entropy;
}

std::vector<double> widen(const float* values, int64_t count) { return {values, values + count}; }

void test_log_probabilities_match_double_precision() {
  for (const int64_t vocab : {1, 2, 7, 16, 17, 31, 33, 511, 512, 513, 1000, 32000, 151936}) {
    if (test::is_too_large(vocab, test::work_of_exponential)) continue;
    for (const auto& [temperature, deviation] : {std::pair{1.0, 1.0}, {0.4, 3.0}, {2.0, 20.0}, {1.0, 100.0}}) {
      const int64_t rows = 3;
      const std::vector<float> logits = random_logits(uint32_t(vocab), rows * vocab, deviation);
      const std::vector<int32_t> tokens = {0, int32_t(vocab / 2), int32_t(vocab - 1)};
      std::vector<float> log_probs(rows), entropies(rows);
      token_log_probs(rows, vocab, logits.data(), tokens.data(), temperature, log_probs.data(), entropies.data());
      for (int64_t row = 0; row < rows; row++) {
        const std::vector<double> expected = log_softmax(widen(&logits[row * vocab], vocab), temperature);
        CHECK(near(log_probs[row], expected[tokens[row]], 1e-6), "vocab %d: %.9g, not %.9g", int(vocab),
              log_probs[row], expected[tokens[row]]);
        CHECK(near(entropies[row], entropy_of(expected), 1e-6), "vocab %d: %.9g, not %.9g", int(vocab), entropies[row],
              entropy_of(expected));
      }
      std::vector<float> alone(rows);
      token_log_probs(rows, vocab, logits.data(), tokens.data(), temperature, alone.data(), nullptr);
      CHECK(alone == log_probs);
    }
  }
  token_log_probs(0, 10, nullptr, nullptr, 1, nullptr, nullptr);
}

void test_impossible_and_non_finite_logits() {
  for (const int64_t vocab : {5, 40, 600}) {
    std::vector<float> logits(vocab, -inf);
    logits[1] = logits[3] = 2;
    float log_prob, entropy;
    const auto score = [&](int32_t token) { token_log_probs(1, vocab, logits.data(), &token, 1, &log_prob, &entropy); };
    score(3);
    CHECK(near(log_prob, -std::log(2.0), 1e-6) && near(entropy, std::log(2.0), 1e-6), "%g %g", log_prob, entropy);
    score(0);
    CHECK(log_prob == -inf && near(entropy, std::log(2.0), 1e-6));
    score(int32_t(vocab));
    CHECK(std::isnan(log_prob) && std::isnan(entropy));
    score(-1);
    CHECK(std::isnan(log_prob) && std::isnan(entropy));
    for (const float broken : {nan, inf}) {
      logits[vocab - 1] = broken;
      score(3);
      CHECK(std::isnan(log_prob) && std::isnan(entropy));
    }
    std::fill(logits.begin(), logits.end(), -inf);
    score(3);
    CHECK(std::isnan(log_prob));
  }
}

constexpr KlEstimator all_estimators[] = {KlEstimator::k1,  KlEstimator::k2,      KlEstimator::k3,
                                          KlEstimator::abs, KlEstimator::k1_plus, KlEstimator::k3_plus};

// Definitions of the estimators.
double kl_value(double d, KlEstimator estimator) {
  switch (estimator) {
    case KlEstimator::k1:
    case KlEstimator::k1_plus: return -d;
    case KlEstimator::k2: return d * d / 2;
    case KlEstimator::abs: return std::abs(d);
    default: return std::min(std::exp(d) - d - 1, 10.0);
  }
}

// Estimator whose derivative is the gradient of this one.
KlEstimator slope_of(KlEstimator estimator) {
  return estimator == KlEstimator::k1_plus || estimator == KlEstimator::k3_plus ? KlEstimator::k2 : estimator;
}

// Loss of one row as defined in token_log_probs.h and clipped_surrogate.h, from logits in double.
double row_loss(const std::vector<double>& z, const PolicyHeadRow& row, const PolicyHeadOptions& options,
                const HeadTokens& others = {}) {
  const std::vector<double> log_probs = log_softmax(z, options.temperature);
  const double log_prob = log_probs[row.token], entropy = entropy_of(log_probs);
  double of_others = 0;
  for (int64_t i = 0; i < others.count; i++)
    if (others.tokens[i] >= 0) of_others += double(others.gradients[i]) * log_probs[others.tokens[i]];
  if (options.mode == HeadMode::linear)
    return double(row.gradient) * log_prob + of_others +
           ((options.has_entropy_gradient ? double(row.entropy_gradient) : 0) - row.weight * options.entropy_weight) * entropy;
  double loss = -log_prob;
  if (options.mode == HeadMode::policy) {
    const PolicyLossOptions& o = options.loss;
    const double a = row.advantage, r = std::exp(log_prob - double(row.old_log_prob));
    loss = std::max(-a * r, -a * std::min(std::max(r, 1 - o.clip_low), 1 + o.clip_high));
    if (a < 0) loss = std::min(loss, -a * o.clip_dual);
    const double d = double(row.reference_log_prob) - log_prob;
    if (options.has_reference) loss += o.kl_weight * kl_value(d, o.kl_estimator);
  }
  return row.weight * (loss - options.entropy_weight * entropy);
}

// Compares the gradient and the results of the kernel with central differences of `row_loss`.
void check_head(int64_t vocab, double deviation, PolicyHeadRow row, const PolicyHeadOptions& options, uint32_t stream,
                const char* what, const HeadTokens& others = {}) {
  const std::vector<float> logits = random_logits(stream, vocab, deviation);
  std::vector<double> z = widen(logits.data(), vocab);
  const std::vector<double> log_probs = log_softmax(z, options.temperature);
  row.old_log_prob += float(log_probs[row.token]);  // the test cases contain differences
  row.reference_log_prob += float(log_probs[row.token]);
  std::vector<float> gradient = logits;
  PolicyHeadResult result;
  policy_head_chunk(1, vocab, gradient.data(), &row, options, &result, others);
  CHECK(near(result.log_prob, log_probs[row.token], 1e-6) && near(result.entropy, entropy_of(log_probs), 1e-6),
        "%s: log p %g, entropy %g", what, result.log_prob, result.entropy);
  PolicyHeadSums sums;
  sums.add(row, result, options);
  if (options.mode != HeadMode::linear)
    CHECK(near(sums.loss, row_loss(z, row, options), 2e-6), "%s: loss %g, not %g", what, sums.loss,
          row_loss(z, row, options));
  PolicyHeadOptions sloped = options;
  sloped.loss.kl_estimator = slope_of(options.loss.kl_estimator);
  double total = 0;
  for (int64_t j = 0; j < vocab; j++) {
    constexpr double h = 1e-5;
    const double before = z[j];
    z[j] = before + h;
    const double up = row_loss(z, row, sloped, others);
    z[j] = before - h;
    const double down = row_loss(z, row, sloped, others);
    z[j] = before;
    const double expected = (up - down) / (2 * h);
    CHECK(std::abs(gradient[j] - expected) <= 2e-6 * std::max(1.0, std::abs(expected)), "%s, logit %d: %g, not %g",
          what, int(j), gradient[j], expected);
    total += gradient[j];
  }
  CHECK(std::abs(total) < 1e-5, "%s: the gradients of a row must sum to 0, not %g", what, total);
}

void test_head_gradients_match_finite_differences() {
  const auto row = [](float weight, float advantage, float old_minus_new, float reference_minus_new) {
    return PolicyHeadRow{.token = 3, .weight = weight, .advantage = advantage, .old_log_prob = old_minus_new,
                         .reference_log_prob = reference_minus_new, .gradient = 0.7f, .entropy_gradient = -0.4f};
  };
  // Both sides of each bound: inside the clip, above and below it, beyond the dual clip, beyond every clamp.
  for (const float advantage : {1.5f, -0.8f, 0.0f})
    for (const float old_minus_new : {0.0f, 0.1f, -0.1f, 0.23f, -0.19f, 0.5f, -0.5f, -1.05f, -1.2f, 21.0f, -21.0f})
      for (const double clip_dual : {3.0, double(inf)}) {
        if (clip_dual == inf && old_minus_new < -2 && advantage < 0) continue;  // e^20: finite differences have no precision
        PolicyHeadOptions options;
        options.loss.clip_dual = clip_dual;
        options.loss.clip_high = 0.28;
        check_head(19, 1, row(0.25f, advantage, old_minus_new, 0), options, 1, "policy");
      }
  for (const KlEstimator estimator : all_estimators)
    // k3 unbounded, bounded by 10, and with clamped exponent, on both sides; |d| has no derivative at 0.
    for (const float reference_minus_new : {0.01f, 0.3f, -0.3f, 2.0f, -2.0f, 3.0f, -9.0f, -12.0f, 25.0f, -25.0f}) {
      PolicyHeadOptions options;
      options.has_reference = true;
      options.loss.kl_weight = 1e-3;
      options.loss.kl_estimator = estimator;
      check_head(19, 1, row(0.5f, 1, 0.1f, reference_minus_new), options, 2, "policy with KL");
      options.entropy_weight = 0.02;
      options.temperature = 0.7;
      check_head(37, 2, row(0.5f, -1, 0.1f, reference_minus_new), options, 3, "policy with KL and entropy bonus");
    }
  for (const double temperature : {1.0, 0.4, 1.7})
    for (const double entropy_weight : {0.0, 0.5, -0.1})
      for (const HeadMode mode : {HeadMode::policy, HeadMode::sft, HeadMode::linear})
        for (const int64_t vocab : {4, 16, 48, 515}) {
          if (test::is_too_large(4 * vocab, vocab, test::work_of_exponential)) continue;  // two losses for each logit
          PolicyHeadOptions options;
          options.mode = mode;
          options.temperature = temperature;
          options.entropy_weight = entropy_weight;
          check_head(vocab, 1.5, row(0.125f, 0.9f, 0.05f, 0), options, uint32_t(vocab), "all modes");
          if (mode != HeadMode::linear) continue;
          const int32_t tokens[] = {vocab > 4 ? int32_t(vocab - 1) : 1, -1, 3, 0};  // the second is empty, the third the sampled token
          const float gradients[] = {0.8f, nan, -0.3f, 0.6f};
          PolicyHeadRow with_others = row(0.125f, 0.9f, 0.05f, 0);
          with_others.others_gradient = gradients[0] + gradients[2] + gradients[3];
          const HeadTokens others = {4, tokens, gradients, nullptr};
          check_head(vocab, 1.5, with_others, options, uint32_t(vocab), "gradients by other tokens", others);
          options.has_entropy_gradient = true;
          check_head(vocab, 1.5, with_others, options, uint32_t(vocab), "gradients by other tokens and the entropy", others);
          check_head(vocab, 1.5, row(0.125f, 0.9f, 0.05f, 0), options, uint32_t(vocab), "gradient by the entropy");
        }
}

void test_masked_rows_are_zero() {
  const int64_t vocab = 21;
  for (const HeadMode mode : {HeadMode::policy, HeadMode::sft, HeadMode::linear})
    for (const double entropy_weight : {0.0, 0.1}) {
      std::vector<float> logits(vocab, nan);
      const PolicyHeadRow row = {.token = 999, .weight = 0, .advantage = inf, .old_log_prob = nan, .gradient = nan};
      PolicyHeadOptions options;
      options.mode = mode;
      options.entropy_weight = entropy_weight;
      PolicyHeadResult result = {.log_prob = 5, .loss = 7};
      policy_head_chunk(1, vocab, logits.data(), &row, options, &result);
      CHECK(logits == std::vector<float>(vocab, 0.0f));
      PolicyHeadSums sums;
      sums.add(row, result, options);
      CHECK(result.log_prob == 0 && result.loss == 0 && sums.tokens == 0 && sums.loss == 0);
    }
}

void test_non_finite_rows_give_nan() {
  const int64_t vocab = 21;
  for (const HeadMode mode : {HeadMode::policy, HeadMode::sft, HeadMode::linear}) {
    PolicyHeadOptions options;
    options.mode = mode;
    PolicyHeadResult result;
    std::vector<float> logits = random_logits(1, vocab, 1);
    PolicyHeadRow row = {.token = 21, .weight = 1, .advantage = 1, .gradient = 1};
    policy_head_chunk(1, vocab, logits.data(), &row, options, &result);
    CHECK(std::isnan(logits[4]) && std::isnan(result.log_prob));
    logits = random_logits(1, vocab, 1);
    logits[20] = nan;
    row.token = 2;
    policy_head_chunk(1, vocab, logits.data(), &row, options, &result);
    CHECK(std::isnan(logits[4]) && std::isnan(logits[2]) && std::isnan(result.log_prob));
  }
}

void test_scoring_keeps_the_logits() {
  const int64_t rows = 4, vocab = 777;
  const std::vector<float> before = random_logits(8, rows * vocab, 2);
  std::vector<float> logits = before;
  std::vector<PolicyHeadRow> inputs(rows);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < rows; i++) tokens.push_back(inputs[i].token = int32_t(100 * i));  // weights stay 0
  PolicyHeadOptions options;
  options.mode = HeadMode::score;
  options.temperature = 0.9;
  options.entropy_weight = 1;
  std::vector<PolicyHeadResult> results(rows);
  const std::vector<int32_t> other_tokens = {0, 5, 5, 776, 200, 3, 300, 299};  // two per row
  std::vector<float> of_others(other_tokens.size());
  policy_head_chunk(rows, vocab, logits.data(), inputs.data(), options, results.data(),
                    {2, other_tokens.data(), nullptr, of_others.data()});
  std::vector<float> log_probs(rows), entropies(rows);
  token_log_probs(rows, vocab, before.data(), tokens.data(), 0.9, log_probs.data(), entropies.data());
  CHECK(logits == before);
  for (int64_t i = 0; i < rows; i++)
    CHECK(results[i].log_prob == log_probs[i] && results[i].entropy == entropies[i] && results[i].loss == 0);
  for (size_t i = 0; i < other_tokens.size(); i++) {
    const std::vector<double> row = log_softmax(widen(&before[i / 2 * vocab], vocab), 0.9);
    CHECK(near(of_others[i], row[size_t(other_tokens[i])], 1e-6), "token %d: %g", other_tokens[i], of_others[i]);
  }
}

void test_distances_match_double_precision() {
  for (const int64_t vocab : {1, 2, 7, 16, 17, 33, 513, 32000, 151936})
    for (const double temperature : {1.0, 0.4, 2.0})
      for (const double apart : {0.0, 1e-6, 1e-3, 1.0, 30.0}) {
        if (test::is_too_large(vocab, test::work_of_exponential)) continue;
        const std::vector<float> z = random_logits(uint32_t(vocab), vocab, 3);
        std::vector<float> w = z;
        for (size_t j = 0; j < w.size(); j++) w[j] += normal(uint32_t(vocab) + 1, uint32_t(j), apart) + 2;  // a common shift has no effect
        const std::vector<double> p = log_softmax(widen(z.data(), vocab), temperature), q = log_softmax(widen(w.data(), vocab), temperature);
        double squares = 0;
        for (size_t j = 0; j < p.size(); j++) squares += std::pow(std::exp(p[j] / 2) - std::exp(q[j] / 2), 2);
        const double wanted = std::sqrt(squares / 2), found = hellinger(vocab, z.data(), w.data(), temperature);
        CHECK(std::abs(found - wanted) < 2e-7 + 2e-6 * wanted, "%d tokens, %g apart: %g, not %g", int(vocab), apart, found, wanted);
        CHECK(hellinger(vocab, z.data(), z.data(), temperature) == 0 && hellinger(vocab, w.data(), z.data(), temperature) == float(found));
      }
  const std::vector<float> one = {50, -inf, 0, -1e30f}, other = {-inf, 50, 0, -1e30f}, broken = {0, 1, nan, 0};
  CHECK(hellinger(4, one.data(), other.data(), 1) == 1 && hellinger(4, one.data(), one.data(), 1) == 0);
  CHECK(std::isnan(hellinger(4, one.data(), broken.data(), 1)) && std::isnan(hellinger(4, broken.data(), one.data(), 1)));
}

void test_top_tokens_are_sorted() {
  const int64_t vocab = 1003;
  std::vector<float> logits = random_logits(12, vocab, 2);
  for (size_t j = 0; j < logits.size(); j++) logits[j] = std::round(logits[j]);  // many ties
  logits[3] = -inf, logits[4] = nan, logits[5] = -1e30f;
  std::vector<int32_t> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 3, order.begin() + 6);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  for (const int64_t count : {0, 1, 2, 20, 500, 1000, 1003}) {
    std::vector<int32_t> tokens(size_t(count), 7);
    std::vector<float> log_probs(tokens.size());
    top_tokens(vocab, logits.data(), 0.7f, count, tokens.data(), log_probs.data());
    const auto found = std::min<int64_t>(count, 1000);
    CHECK(std::equal(tokens.begin(), tokens.begin() + found, order.begin()), "%d tokens", int(count));
    CHECK(std::all_of(tokens.begin() + found, tokens.end(), [](int32_t token) { return token == no_token; }));
    for (int64_t i = found; i < count; i++) CHECK(log_probs[size_t(i)] == -inf);
  }
}

void test_rows_do_not_depend_on_the_split() {
  const int64_t rows = 7, vocab = 1003;
  PolicyHeadOptions options;
  options.entropy_weight = 0.01;
  std::vector<PolicyHeadRow> inputs;
  for (int32_t i = 0; i < rows; i++) inputs.push_back({i * 9, 0.1f, 1.0f - float(i % 3), -7, 0, 0, 0});
  std::vector<float> whole = random_logits(9, rows * vocab, 2), split = whole;
  std::vector<PolicyHeadResult> whole_results(rows), split_results(rows);
  policy_head_chunk(rows, vocab, whole.data(), inputs.data(), options, whole_results.data());
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{3, 4}, {0, 1}, {1, 2}})
    policy_head_chunk(count, vocab, &split[first * vocab], &inputs[first], options, &split_results[first]);
  CHECK(whole == split);
  CHECK(std::memcmp(whole_results.data(), split_results.data(), rows * sizeof(PolicyHeadResult)) == 0);
}

// Four rows, the third and longest of them padding; masked tokens are NaN.
struct Batch {
  std::vector<int32_t> lengths = {6, 3, 7, 4};
  std::vector<float> mask = {1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1};
  std::vector<float> log_probs, old_log_probs, advantages, reference;

  Batch() {
    for (uint32_t t = 0; t < mask.size(); t++) {
      log_probs.push_back(mask[t] != 0 ? -1.5f + normal(1, t, 0.4) : nan);
      old_log_probs.push_back(mask[t] != 0 ? -1.5f + normal(2, t, 0.4) : nan);
      advantages.push_back(mask[t] != 0 ? (t < 6 ? 1.2f : -0.8f) : nan);
      reference.push_back(mask[t] != 0 ? -1.5f + normal(3, t, 0.4) : nan);
    }
    log_probs[16] = -0.1f, old_log_probs[16] = -2.0f;  // A < 0 and ratio 6.7: the dual clip
  }
  ClippedSurrogateInput input() const {
    return {int64_t(lengths.size()), int64_t(mask.size()), lengths.data(),   log_probs.data(),
            old_log_probs.data(),    advantages.data(),    mask.data(), reference.data()};
  }
};

// Definition with log-probabilities in double, so that it can be differentiated numerically. With a sequence ratio the
// mean is taken at `frozen`, and each token changes its own ratio relative to it.
double surrogate(const Batch& batch, const std::vector<double>& log_probs, const std::vector<double>& frozen,
                 const ClippedSurrogateOptions& o, bool only_policy = false) {
  double token_sum = 0, row_sums = 0, row_means = 0;
  int tokens = 0, rows = 0, longest = 0;
  size_t start = 0;
  for (const int32_t length : batch.lengths) {
    double mean_shift = 0, row_sum = 0;
    int active = 0;
    for (size_t t = start; t < start + size_t(length); t++)
      if (batch.mask[t] != 0) mean_shift += frozen[t] - double(batch.old_log_probs[t]), active++;
    for (size_t t = start; t < start + size_t(length); t++) {
      if (batch.mask[t] == 0) continue;
      const double shift = o.ratio == RatioLevel::sequence ? mean_shift / active + log_probs[t] - frozen[t]
                                                           : log_probs[t] - double(batch.old_log_probs[t]);
      const double a = batch.advantages[t], r = std::exp(shift), d = double(batch.reference[t]) - log_probs[t];
      double loss = std::max(-a * r, -a * std::min(std::max(r, 1 - o.clip_low), 1 + o.clip_high));
      if (a < 0) loss = std::min(loss, -a * o.clip_dual);
      row_sum += loss + (only_policy ? 0 : o.kl_weight * kl_value(d, o.kl_estimator));
    }
    start += size_t(length);
    if (active == 0) continue;
    tokens += active, rows++, longest = std::max(longest, int(length));
    token_sum += row_sum, row_sums += row_sum, row_means += row_sum / active;
  }
  switch (o.aggregation) {
    case Aggregation::token_mean: return token_sum / tokens;
    case Aggregation::token_sum: return token_sum;
    case Aggregation::sequence_mean_token_sum: return row_sums / rows;
    case Aggregation::sequence_mean_token_mean: return row_means / rows;
    case Aggregation::sequence_mean_fixed_length: return row_sums / (rows * double(o.fixed_length));
    case Aggregation::sequence_mean_token_sum_norm: return row_sums / longest;
  }
  return 0;
}

void test_surrogate_matches_its_definition() {
  Batch batch;
  for (const Aggregation aggregation :
       {Aggregation::token_mean, Aggregation::token_sum, Aggregation::sequence_mean_token_sum, Aggregation::sequence_mean_token_mean,
        Aggregation::sequence_mean_fixed_length, Aggregation::sequence_mean_token_sum_norm})
    for (const RatioLevel ratio : {RatioLevel::token, RatioLevel::sequence})
      for (const KlEstimator estimator : all_estimators)
        for (const double kl_weight : {0.0, 0.1}) {
          ClippedSurrogateOptions options;
          options.aggregation = aggregation;
          options.fixed_length = aggregation == Aggregation::sequence_mean_fixed_length ? 5 : 0;
          options.ratio = ratio;
          options.kl_estimator = estimator;
          options.kl_weight = kl_weight;
          options.clip_high = 0.28;
          std::vector<float> gradient(batch.mask.size(), nan);
          const ClippedSurrogateReport report = clipped_surrogate(batch.input(), options, gradient.data());
          const std::vector<double> at = widen(batch.log_probs.data(), int64_t(batch.log_probs.size()));
          CHECK(near(report.loss, surrogate(batch, at, at, options), 1e-12), "%g", report.loss);
          CHECK(near(report.policy_loss, surrogate(batch, at, at, options, true), 1e-12), "%g", report.policy_loss);
          CHECK(near(report.loss, report.policy_loss + kl_weight * report.kl, 1e-12));
          CHECK(report.active == 11);
          for (size_t t = 0; t < gradient.size(); t++) {
            if (batch.mask[t] == 0) {
              CHECK(gradient[t] == 0);
              continue;
            }
            ClippedSurrogateOptions sloped = options;
            sloped.kl_estimator = slope_of(estimator);
            std::vector<double> moved = at;
            moved[t] = at[t] + 1e-6;
            const double up = surrogate(batch, moved, at, sloped);
            moved[t] = at[t] - 1e-6;
            const double expected = (up - surrogate(batch, moved, at, sloped)) / 2e-6;
            CHECK(near(gradient[t], expected, 2e-7), "token %d: %g, not %g", int(t), gradient[t], expected);
          }
          CHECK(clipped_surrogate(batch.input(), options, nullptr).loss == report.loss);
        }
}

void test_report_fields() {
  const std::vector<int32_t> lengths = {5};
  const std::vector<float> mask(5, 1), old_log_probs(5, -1);
  // Clipped above, inside, dual clip, clipped below, and inside for a negative advantage above the clip.
  const std::vector<float> advantages = {1, 1, -1, -1, -1}, log_probs = {-0.5f, -1.1f, 0.5f, -2, -0.5f};
  const ClippedSurrogateInput input = {1, 5, lengths.data(), log_probs.data(), old_log_probs.data(),
                                       advantages.data(), mask.data(), nullptr};
  std::vector<float> gradient(5);
  const ClippedSurrogateReport report = clipped_surrogate(input, {}, gradient.data());
  CHECK(near(report.clip_fraction, 0.4, 1e-12) && near(report.dual_clip_fraction, 0.2, 1e-12));
  CHECK(gradient[0] == 0 && gradient[1] < 0 && gradient[2] == 0 && gradient[3] == 0 && gradient[4] > 0);
  double ratio = 0, policy_kl = 0;
  for (size_t t = 0; t < 5; t++) {
    ratio += std::exp(double(log_probs[t]) + 1) / 5;
    policy_kl += (-1 - double(log_probs[t])) / 5;
  }
  CHECK(near(report.ratio, ratio, 1e-12) && near(report.policy_kl, policy_kl, 1e-12) && report.kl == 0);
}

void test_clip_bounds_are_inclusive() {
  PolicyLossOptions options;
  options.clip_low = 0.5, options.clip_high = 1, options.clip_dual = 4;
  const auto gradient = [&](double ratio, double advantage) {
    return token_loss(-1, std::log(ratio), advantage, false, 0, options).gradient;
  };
  CHECK(gradient(2 - 1e-9, 1) < 0 && gradient(2 + 1e-9, 1) == 0);
  CHECK(gradient(0.5 + 1e-9, -1) > 0 && gradient(0.5 - 1e-9, -1) == 0);
  CHECK(gradient(4 - 1e-9, -1) > 0 && gradient(4 + 1e-9, -1) == 0);
  CHECK(token_loss(-1, 0, 1, false, 0, options).gradient == -1);
  options.clip_low = options.clip_high = 0;  // r = 1 is on both bounds
  CHECK(token_loss(-1, 0, 1, false, 0, options).gradient == -1 && !token_loss(-1, 0, 1, false, 0, options).clipped);
}

void test_kl_estimators_at_their_bounds() {
  for (const double d : {2.610, 2.612, -10.9999, -11.0}) {
    const double value = std::exp(d) - d - 1;
    const KlEstimate k3 = kl_estimate(d, KlEstimator::k3), plus = kl_estimate(d, KlEstimator::k3_plus);
    CHECK(near(k3.value, std::min(value, 10.0), 1e-12) && near(k3.gradient, value > 10 ? 0 : 1 - std::exp(d), 1e-12),
          "%g: %g, %g", d, k3.value, k3.gradient);
    CHECK(plus.value == k3.value && plus.gradient == -d);
  }
  CHECK(kl_estimate(0, KlEstimator::abs).gradient == 0 && kl_estimate(0, KlEstimator::k3).gradient == 0);
  CHECK(kl_estimate(1e30, KlEstimator::k3).value == 10 && kl_estimate(-1e30, KlEstimator::k3).value == 10);
}

void test_extreme_and_nan_log_probabilities() {
  PolicyLossOptions options;
  options.kl_weight = 1, options.clip_dual = inf;
  for (const KlEstimator estimator : all_estimators)
    for (const double log_prob : {-1e30, -1000.0, -30.0})
      for (const double old_log_prob : {-1e30, -1000.0, 0.0})
        for (const double reference : {-1e30, -1000.0, 0.0})
          for (const double advantage : {1.0, -1.0}) {
            options.kl_estimator = estimator;
            const TokenLoss token = token_loss(log_prob, log_prob - old_log_prob, advantage, true, reference, options);
            CHECK(std::isfinite(token.policy) && std::isfinite(token.kl) && std::isfinite(token.gradient));
          }
  const TokenLoss broken = token_loss(nan, nan, 1, true, -1, options);
  CHECK(std::isnan(broken.policy) && std::isnan(broken.gradient) && std::isnan(broken.kl));
}

void test_invalid_surrogate_inputs() {
  Batch batch;
  ClippedSurrogateInput input = batch.input();
  ClippedSurrogateOptions options;
  options.kl_weight = 0.1;
  input.reference_log_probs = nullptr;
  CHECK_THROWS(clipped_surrogate(input, options, nullptr), "BAD_ARGUMENT");
  input = batch.input();
  options.aggregation = Aggregation::sequence_mean_fixed_length;
  CHECK_THROWS(clipped_surrogate(input, options, nullptr), "BAD_ARGUMENT");
  input.tokens--;
  CHECK_THROWS(clipped_surrogate(input, {}, nullptr), "BAD_ARGUMENT");
  input.tokens += 2;
  CHECK_THROWS(clipped_surrogate(input, {}, nullptr), "BAD_ARGUMENT");
  batch.lengths[1] = -3;
  CHECK_THROWS(clipped_surrogate(batch.input(), {}, nullptr), "BAD_ARGUMENT");
  const ClippedSurrogateReport none = clipped_surrogate({}, {}, nullptr);
  CHECK(none.loss == 0 && none.ratio == 0 && none.active == 0);
}

// Scoring, then the separate surrogate, then its gradient through the head: equal to the fused pass.
void test_fused_head_equals_separate_surrogate() {
  const int64_t rows = 6, vocab = 50;
  const std::vector<float> logits = random_logits(21, rows * vocab, 1);
  const std::vector<int32_t> lengths = {2, 4};
  const std::vector<float> mask = {1, 1, 1, 0, 1, 1};
  std::vector<int32_t> tokens;
  std::vector<float> log_probs(rows), old_log_probs, advantages, reference, gradient(rows);
  for (uint32_t i = 0; i < rows; i++) tokens.push_back(int32_t(random_word(1, i) % vocab));
  token_log_probs(rows, vocab, logits.data(), tokens.data(), 1, log_probs.data(), nullptr);
  for (uint32_t i = 0; i < rows; i++) {
    old_log_probs.push_back(log_probs[i] + normal(4, i, 0.2));
    reference.push_back(log_probs[i] + normal(5, i, 0.2));
    advantages.push_back(normal(6, i, 1));
  }
  ClippedSurrogateOptions options;
  options.kl_weight = 0.05;
  const ClippedSurrogateReport report =
      clipped_surrogate({2, rows, lengths.data(), log_probs.data(), old_log_probs.data(), advantages.data(),
                         mask.data(), reference.data()},
                        options, gradient.data());
  PolicyHeadOptions head;
  head.loss = options;
  head.has_reference = true;
  std::vector<PolicyHeadRow> inputs;
  for (int64_t i = 0; i < rows; i++)
    inputs.push_back({tokens[i], mask[i] / 5, advantages[i], old_log_probs[i], reference[i], gradient[i], 0});
  std::vector<float> fused = logits, chained = logits;
  std::vector<PolicyHeadResult> results(rows);
  policy_head_chunk(rows, vocab, fused.data(), inputs.data(), head, results.data());
  PolicyHeadSums sums;
  for (int64_t i = 0; i < rows; i++) sums.add(inputs[i], results[i], head);
  CHECK(near(sums.loss, report.loss, 1e-6) && sums.tokens == 5 && near(sums.kl / 5, report.kl, 1e-6));
  CHECK(near(sums.ratio / 5, report.ratio, 1e-6) && near(sums.policy_kl / 5, report.policy_kl, 1e-6));
  CHECK(near(double(sums.clipped) / 5, report.clip_fraction, 1e-12));
  head.mode = HeadMode::linear;
  policy_head_chunk(rows, vocab, chained.data(), inputs.data(), head, results.data());
  for (size_t i = 0; i < fused.size(); i++) CHECK(near(fused[i], chained[i], 1e-6), "%g, not %g", fused[i], chained[i]);
}

}  // namespace

int main() {
  test::on_each_isa([&](cpu::Isa) {
    test_log_probabilities_match_double_precision();
    test_impossible_and_non_finite_logits();
    test_head_gradients_match_finite_differences();
    test_masked_rows_are_zero();
    test_non_finite_rows_give_nan();
    test_scoring_keeps_the_logits();
    test_distances_match_double_precision();
    test_top_tokens_are_sorted();
    test_rows_do_not_depend_on_the_split();
    test_fused_head_equals_separate_surrogate();
  });
  test_surrogate_matches_its_definition();
  test_report_fields();
  test_clip_bounds_are_inclusive();
  test_kl_estimators_at_their_bounds();
  test_extreme_and_nan_log_probabilities();
  test_invalid_surrogate_inputs();
  return gigpo::test::report();
}
