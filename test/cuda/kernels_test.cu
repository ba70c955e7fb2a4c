// Each CUDA kernel against the CPU kernel of the same name. Without a GPU it is skipped, with the reason.
#include <cuda_bf16.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/kernels/anchor_groups.h"
#include "core/kernels/clipped_surrogate.h"
#include "core/kernels/token_log_probs.h"
#include "core/random.h"
#include "cuda/check.h"
#include "cuda/kernels.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/logits.h"
#include "test/cuda/on_card.h"

using namespace gigpo;

namespace {

using test::as_float, test::DeviceArray, test::from_float, test::inf, test::nan, test::normal, test::random_word;

// Logits that both types can represent, some of them impossible tokens. Token 1 of a row is always possible.
template <class Logit>
std::vector<Logit> random_logits(uint32_t stream, int64_t rows, int64_t vocab, double deviation) {
  std::vector<Logit> logits;
  for (int64_t i = 0; i < rows * vocab; i++) {
    const bool impossible = i % vocab != 1 && random_word(stream, uint32_t(i)) % 16 == 0;
    logits.push_back(from_float<Logit>(impossible ? -inf : normal(stream, uint32_t(i), deviation)));
  }
  return logits;
}

template <class Logit>
std::vector<float> widened(const std::vector<Logit>& logits) {
  std::vector<float> values;
  for (const Logit logit : logits) values.push_back(as_float(logit));
  return values;
}

bool near(double value, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(value);
  return value == expected || std::abs(value - expected) <= tolerance * std::fmax(1.0, std::abs(expected));
}

template <class Logit>
void test_log_probabilities() {
  for (const int64_t vocab : {2, 7, 32, 511, 1001, 4096, 32003, 151936})
    for (const double temperature : {1.0, 0.4}) {
      const int64_t rows = 5;
      std::vector<Logit> logits = random_logits<Logit>(uint32_t(vocab), rows, vocab, 3);
      logits[size_t(3 * vocab)] = from_float<Logit>(nan);
      logits[size_t(4 * vocab)] = from_float<Logit>(inf);
      const std::vector<int32_t> tokens = {1, int32_t(vocab - 1), int32_t(vocab), 1, 1};
      std::vector<float> log_probs(rows), entropies(rows);
      token_log_probs(rows, vocab, widened(logits).data(), tokens.data(), temperature, log_probs.data(), entropies.data());
      const DeviceArray<Logit> device_logits(logits);
      const DeviceArray<int32_t> device_tokens(tokens);
      const DeviceArray<float> device_log_probs(rows), device_entropies(rows);
      for (float* wanted : {device_entropies.data, static_cast<float*>(nullptr)})
        cuda::token_log_probs(rows, vocab, device_logits.data, device_tokens.data, temperature, device_log_probs.data,
                              wanted, nullptr);
      const std::vector<float> found = device_log_probs.read(), found_entropies = device_entropies.read();
      for (int64_t i = 0; i < rows; i++) {
        CHECK(near(found[i], log_probs[i], 2e-6), "vocab %d: %.9g, not %.9g", int(vocab), found[i], log_probs[i]);
        CHECK(near(found_entropies[i], entropies[i], 2e-6), "vocab %d: %.9g, not %.9g", int(vocab), found_entropies[i],
              entropies[i]);
      }
    }
}

template <class Logit, class Gradient = Logit>
void test_heads() {
  const double tolerance = std::is_same_v<Gradient, float> ? 2e-6 : 1.0 / 256;
  for (const int64_t vocab : {7, 48, 1001, 32768})
    for (const HeadMode mode : {HeadMode::score, HeadMode::policy, HeadMode::sft, HeadMode::linear})
      for (const double entropy_weight : {0.0, 0.05}) {
        const int64_t rows = 9;
        PolicyHeadOptions options;
        options.mode = mode;
        options.temperature = 0.8;
        options.entropy_weight = entropy_weight;
        options.has_reference = true;
        options.has_entropy_gradient = entropy_weight != 0;
        options.loss.kl_weight = 0.1;
        std::vector<Logit> logits = random_logits<Logit>(uint32_t(vocab) + 1, rows, vocab, 2);
        std::vector<PolicyHeadRow> inputs(rows);
        for (uint32_t i = 0; i < rows; i++)
          inputs[i] = {1, 0.25f + float(i), normal(1, i, 1), -5 + normal(2, i, 1), -5 + normal(3, i, 1), normal(4, i, 1), normal(5, i, 1)};
        inputs[2].weight = 0;  // masked, and full of NaN
        for (int64_t j = 0; j < vocab; j++) logits[size_t(2 * vocab + j)] = from_float<Logit>(nan);
        inputs[3].token = int32_t(vocab);
        inputs[4].token = -1;
        logits[size_t(6 * vocab + 3)] = from_float<Logit>(nan);

        std::vector<float> gradient = widened(logits);
        std::vector<PolicyHeadResult> results(rows);
        policy_head_chunk(rows, vocab, gradient.data(), inputs.data(), options, results.data());
        const DeviceArray<Logit> device_logits(logits);
        const DeviceArray<PolicyHeadRow> device_inputs(inputs);
        const DeviceArray<PolicyHeadResult> device_results(rows);
        test::policy_head_chunk_of<Gradient>(rows, vocab, device_logits.data, device_inputs.data, options, device_results.data, nullptr);
        const std::vector<Logit> written = device_logits.read();
        std::vector<float> found = widened(written);
        if (mode != HeadMode::score) {
          for (int64_t i = 0; i < rows * vocab; i++)
            found[size_t(i)] = as_float(reinterpret_cast<const Gradient*>(&written[size_t(i / vocab * vocab)])[i % vocab]);
        }
        const std::vector<PolicyHeadResult> found_results = device_results.read();
        for (size_t i = 0; i < found.size(); i++)
          CHECK(near(found[i], gradient[i], tolerance), "vocab %d, mode %d, row %d, logit %d: %g, not %g", int(vocab),
                int(mode), int(i) / int(vocab), int(i) % int(vocab), found[i], gradient[i]);
        for (int64_t i = 0; i < rows; i++) {
          const PolicyHeadResult &a = found_results[i], &b = results[i];
          CHECK(near(a.log_prob, b.log_prob, 2e-6) && near(a.entropy, b.entropy, 2e-6) && near(a.loss, b.loss, 1e-5) &&
                    near(a.kl, b.kl, 1e-4) && near(a.ratio, b.ratio, 1e-5) && a.clipped == b.clipped &&
                    a.dual_clipped == b.dual_clipped,
                "vocab %d, mode %d, row %d", int(vocab), int(mode), int(i));
        }
      }
}

void test_surrogates() {
  std::vector<int32_t> lengths;
  std::vector<float> mask, log_probs, old_log_probs, advantages, reference;
  for (uint32_t row = 0; row < 1500; row++) {
    lengths.push_back(int32_t(random_word(1, row) % 90));
    for (int32_t k = 0; k < lengths.back(); k++) {
      const auto t = uint32_t(mask.size());
      const bool active = row % 7 != 3 && random_word(2, t) % 5 != 0;  // some rows are padding
      mask.push_back(active ? 1 : 0);
      log_probs.push_back(active ? -1.5f + normal(3, t, 0.5) : nan);
      old_log_probs.push_back(active ? -1.5f + normal(4, t, 0.5) : nan);
      reference.push_back(active ? -1.5f + normal(5, t, 0.5) : nan);
      advantages.push_back(active ? normal(6, row, 1) : nan);
    }
  }
  const DeviceArray<int32_t> device_lengths(lengths);
  const DeviceArray<float> device_mask(mask), device_log_probs(log_probs), device_old(old_log_probs),
      device_advantages(advantages), device_reference(reference);
  const auto compare = [&](int64_t rows, int64_t tokens, const ClippedSurrogateOptions& options, bool with_reference) {
    ClippedSurrogateInput input;
    input.rows = rows, input.tokens = tokens;
    input.row_lengths = lengths.data(), input.mask = mask.data(), input.log_probs = log_probs.data();
    input.old_log_probs = old_log_probs.data(), input.advantages = advantages.data();
    input.reference_log_probs = with_reference ? reference.data() : nullptr;
    std::vector<float> gradient(static_cast<size_t>(tokens));
    const ClippedSurrogateReport expected = clipped_surrogate(input, options, gradient.data());
    input.row_lengths = device_lengths.data, input.mask = device_mask.data, input.log_probs = device_log_probs.data;
    input.old_log_probs = device_old.data, input.advantages = device_advantages.data;
    input.reference_log_probs = with_reference ? device_reference.data : nullptr;
    const DeviceArray<float> device_gradient(static_cast<size_t>(tokens));
    const DeviceArray<ClippedSurrogateReport> device_report(1);
    const DeviceArray<char> workspace(cuda::clipped_surrogate_workspace(rows));
    cuda::clipped_surrogate(input, options, device_gradient.data, device_report.data, workspace.data, nullptr);
    const ClippedSurrogateReport found = device_report.read()[0];
    CHECK(near(found.loss, expected.loss, 1e-9) && near(found.policy_loss, expected.policy_loss, 1e-9) &&
              near(found.kl, expected.kl, 1e-9) && near(found.ratio, expected.ratio, 1e-9) &&
              near(found.policy_kl, expected.policy_kl, 1e-9),
          "%g, not %g", found.loss, expected.loss);
    CHECK(near(found.clip_fraction, expected.clip_fraction, 1e-12) && found.active == expected.active &&
          near(found.dual_clip_fraction, expected.dual_clip_fraction, 1e-12));
    const std::vector<float> found_gradient = device_gradient.read();
    for (size_t t = 0; t < found_gradient.size(); t++)
      CHECK(std::abs(found_gradient[t] - gradient[t]) <= 1e-6 * std::abs(gradient[t]), "token %d: %g, not %g", int(t),
            found_gradient[t], gradient[t]);
    cuda::clipped_surrogate(input, options, nullptr, device_report.data, workspace.data, nullptr);
    CHECK(device_report.read()[0].loss == found.loss);
  };
  const auto rows = int64_t(lengths.size()), tokens = int64_t(mask.size());
  for (int aggregation = 0; aggregation <= int(Aggregation::sequence_mean_token_sum_norm); aggregation++)
    for (const RatioLevel ratio : {RatioLevel::token, RatioLevel::sequence})
      for (int estimator = 0; estimator <= int(KlEstimator::k3_plus); estimator++) {
        ClippedSurrogateOptions options;
        options.aggregation = Aggregation(aggregation);
        options.fixed_length = 100;
        options.ratio = ratio;
        options.kl_estimator = KlEstimator(estimator);
        options.kl_weight = 0.05;
        compare(rows, tokens, options, true);
      }
  compare(rows, tokens, ClippedSurrogateOptions(), false);
  compare(1, lengths[0], ClippedSurrogateOptions(), true);
  compare(0, 0, ClippedSurrogateOptions(), true);
}

void test_anchor_groups() {
  for (const int32_t count : {0, 1, 31, 1023, 1024, 1025, 20000}) {
    std::vector<int32_t> tasks;
    std::vector<uint8_t> bytes;
    std::vector<int64_t> offsets = {0};
    for (int32_t i = 0; i < count; i++) {
      const uint32_t kind = random_word(1, uint32_t(i)) % uint32_t(count / 3 + 1);
      const uint32_t length = random_word(2, kind) % 300;
      for (uint32_t j = 0; j < length; j++) bytes.push_back(j % 50 ? 'x' : uint8_t(random_word(3, kind * 8 + j / 50)));
      tasks.push_back(int32_t(random_word(4, uint32_t(i)) % 4) - 1);
      offsets.push_back(int64_t(bytes.size()));
    }
    std::vector<int32_t> groups(static_cast<size_t>(count));
    const int32_t expected = group_anchors(count, tasks.data(), bytes.data(), offsets.data(), groups.data());
    const DeviceArray<int32_t> device_tasks(tasks), device_groups(static_cast<size_t>(count)), group_count(1);
    const DeviceArray<uint8_t> device_bytes(bytes);
    const DeviceArray<int64_t> device_offsets(offsets);
    const DeviceArray<char> workspace(cuda::anchor_groups_workspace(count));
    for (const uint64_t hash_mask : {~uint64_t{0}, ~uint64_t{63}, uint64_t{63}, uint64_t{0}}) {
      if (hash_mask < 64 && count > 2000) continue;  // weak hashes compare every state with many groups
      cuda::group_anchors(count, device_tasks.data, device_bytes.data, device_offsets.data, device_groups.data,
                          group_count.data, workspace.data, nullptr, hash_mask);
      CHECK(device_groups.read() == groups, "%d states", int(count));
      CHECK(group_count.read()[0] == expected, "%d groups, not %d", int(group_count.read()[0]), int(expected));
    }
  }
}

constexpr gigpo::test::Test tests[] = {{"log-probabilities of fp32 logits", test_log_probabilities<float>},
                          {"log-probabilities of bf16 logits", test_log_probabilities<__nv_bfloat16>},
                          {"head on fp32 logits", test_heads<float>},
                          {"head on bf16 logits", test_heads<__nv_bfloat16>},
                          {"head on fp32 logits with gradients in bf16", test_heads<float, __nv_bfloat16>},
                          {"clipped surrogate", test_surrogates},
                          {"anchor groups", test_anchor_groups}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
