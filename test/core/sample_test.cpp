// Sampling on the CPU: rare tokens are drawn as often as they should be.
#include <cmath>
#include <vector>

#include "core/device.h"
#include "test/core/check.h"

using namespace gigpo;

// One token that is nearly certain among many of probability 1e-8, 3e-8 and 1e-7: Pearson's chi-square of how often each
// kind is drawn, with three degrees of freedom, whose quantile of 0.999 is 16.3. (The keys are fixed.) With 23 random bits a token of
// 1e-8 is drawn once where it should be thirty times.
static void rare_tokens() {
  constexpr int64_t vocabulary = 16384, rows = 64, batches = 2000;
  constexpr double kinds[] = {1e-8, 3e-8, 1e-7};
  const auto device = make_cpu_device(0);
  std::vector<float> logits(rows * vocabulary), log_probs(rows), temperatures(rows, 1);
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
                   tokens.data(), log_probs.data());
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

int main() {
  rare_tokens();
  return test::report();
}
