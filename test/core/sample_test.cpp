// Sampling on the CPU: rare tokens have the right frequency, and the entropy is that of the sampling distribution.
#include <cmath>
#include <vector>

#include "core/device.h"
#include "core/grammar/logit_masks.h"
#include "test/core/each_isa.h"

using namespace gigpo;

// One nearly certain token among many of probability 1e-8, 3e-8 and 1e-7: Pearson's chi-square of the frequencies of
// the three kinds, with three degrees of freedom, whose 0.999 quantile is 16.3. (The keys are fixed.) With 23 random
// bits a token of 1e-8 would be sampled once instead of thirty times.
static void test_rare_tokens() {
  constexpr int64_t vocabulary = 16384, rows = 64, batches = 2000;
  if (test::is_too_large(vocabulary, rows, batches)) return;
  constexpr double kinds[] = {1e-8, 3e-8, 1e-7};
  const auto device = make_cpu_device(0);
  std::vector<float> logits(rows * vocabulary), log_probs(rows), entropies(rows), temperatures(rows, 1);
  const auto kind_of = [](int64_t token) { return token % 16 == 1 ? 2 : token % 16 < 4 ? 1 : 0; };
  double all[3] = {}, drawn[3] = {};
  for (int64_t token = 1; token < vocabulary; token++) {
    all[kind_of(token)] += kinds[kind_of(token)];
    for (int64_t row = 0; row < rows; row++) logits[row * vocabulary + token] = float(std::log(kinds[kind_of(token)]));
  }
  std::vector<Key> keys(rows);
  std::vector<int32_t> indices(rows), tokens(rows);
  for (int64_t batch = 0; batch < batches; batch++) {
    for (int64_t row = 0; row < rows; row++) keys[row] = {uint32_t(row), 5}, indices[row] = int32_t(batch);
    device->sample({logits.data(), Type::f32, rows, vocabulary, vocabulary}, {temperatures.data(), keys.data(), indices.data()},
                   tokens.data(), log_probs.data(), entropies.data());
    for (const int32_t token : tokens)
      if (token > 0) drawn[kind_of(token)]++;
  }
  double chi_square = 0;
  for (int kind = 0; kind < 3; kind++) {
    const double expected = all[kind] / (1 + all[0] + all[1] + all[2]) * rows * batches;
    chi_square += (drawn[kind] - expected) * (drawn[kind] - expected) / expected;
    std::printf("p = %g: drawn %g times, expected %.1f\n", kinds[kind], drawn[kind], expected);
  }
  CHECK(chi_square < 16.3, "chi-square %g", chi_square);
}

// Entropy in double of softmax(z / T) over the possible tokens.
static double entropy_of(const float* logits, int64_t vocabulary, double temperature) {
  double top = -INFINITY, total = 0, weighted = 0;
  for (int64_t j = 0; j < vocabulary; j++) top = std::fmax(top, logits[j]);
  for (int64_t j = 0; j < vocabulary; j++) {
    const double x = (logits[j] - top) / temperature, p = std::exp(x);
    total += p;
    if (p > 0) weighted += p * x;
  }
  return std::log(total) - weighted / total;
}

// Flat and peaked rows, rows of which a mask leaves some tokens or one, and tokens of probability 0 among the others.
static void entropies(cpu::Isa isa) {
  const std::vector<float> temperatures = {1, 0.7f, 0, 5, 1e-3f, 1, 0.7f, 1, 0};
  constexpr int64_t masked = 5, left_one = 7, impossible = 8;
  const auto rows = int64_t(temperatures.size());
  const auto device = make_cpu_device(2);
  double worst = 0;
  for (const int64_t vocabulary : {1, 2, 5, 17, 33, 1000, 4099, 151936})
    for (const float deviation : {0.f, 0.5f, 4.f, 60.f})
      for (const Type type : {Type::f32, Type::bf16}) {
        if (test::is_too_large(vocabulary, test::work_of_exponential)) continue;
        std::vector<float> logits(rows * vocabulary);
        for (size_t i = 0; i < logits.size(); i++)
          logits[i] = deviation * std::log(open_uniform(philox({3, uint32_t(vocabulary)}, uint32_t(i), 0, 0, 0).word[0]));
        for (int64_t j = 1; j < vocabulary; j += 3) logits[impossible * vocabulary + j] = -INFINITY;
        std::vector<uint16_t> rounded(logits.size());
        const Tensor floats{logits.data(), Type::f32, rows, vocabulary, vocabulary}, halves{rounded.data(), Type::bf16, rows, vocabulary, vocabulary};
        if (type == Type::bf16) device->copy(floats, halves);
        const Tensor given = type == Type::bf16 ? halves : floats;
        TokenMask some((vocabulary + 31) / 32, 0x24924925u), one((vocabulary + 31) / 32, 0);
        one[0] = 1;
        std::vector<const TokenMask*> masks(rows, nullptr);
        for (int64_t row = masked; row < left_one; row++) masks[row] = &some;
        masks[left_one] = &one;
        LogitMasker(*device).mask(given, masks.data());
        if (type == Type::bf16) device->copy(halves, floats);

        const std::vector<Key> keys(rows);
        const std::vector<int32_t> indices(rows);
        std::vector<int32_t> tokens(rows);
        std::vector<float> log_probs(rows), found(rows);
        device->sample(given, {temperatures.data(), keys.data(), indices.data()}, tokens.data(), log_probs.data(), found.data());
        for (int64_t row = 0; row < rows; row++) {
          const double temperature = temperatures[row] == 0 ? 1 : temperatures[row];
          const double wanted = entropy_of(&logits[row * vocabulary], vocabulary, temperature);
          const double error = std::abs(double(found[row]) - wanted);
          worst = std::max(worst, error);
          // Same accuracy as the log-probability, whose sum is in float over few lanes.
          CHECK(error < 5e-5 && found[row] >= 0, "%s, %d tokens, deviation %g, row %d: %.9g, not %.9g", cpu::isa_name(isa), int(vocabulary),
                double(deviation), int(row), double(found[row]), wanted);
        }
        CHECK(found[left_one] == 0 && tokens[left_one] == 0, "%g", double(found[left_one]));
      }
  std::printf("%s: the entropies are right to %.2g\n", cpu::isa_name(isa), worst);
}

// A NaN log-probability implies a NaN entropy.
static void test_non_finite_rows() {
  constexpr int64_t vocabulary = 40;
  const auto device = make_cpu_device(1);
  for (const float temperature : {0.f, 1.f})
    for (const float broken : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> logits(vocabulary, std::isinf(broken) && broken < 0 ? broken : 0);
      logits[17] = broken;
      const Key key;
      const int32_t index = 0;
      int32_t token;
      float log_prob, entropy;
      device->sample({logits.data(), Type::f32, 1, vocabulary, vocabulary}, {&temperature, &key, &index}, &token, &log_prob, &entropy);
      CHECK(std::isnan(log_prob) && std::isnan(entropy), "%g: %g and %g", double(broken), double(log_prob), double(entropy));
    }
}

int main() {
  test_rare_tokens();
  test::on_each_isa([](cpu::Isa isa) {
    entropies(isa);
    test_non_finite_rows();
  });
  return test::report();
}
