// Sampling compared with the CPU: the same tokens for the same logits, even if scores differ only in the last digit.
#include "core/cpu/kernels.h"
#include "core/kernels/top_tokens.h"
#include "cuda/operations.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;

namespace {

struct Draws {
  std::vector<int32_t> tokens;
  std::vector<float> log_probs, entropies;
};

struct Inputs {
  explicit Inputs(int64_t rows, uint32_t stream, std::vector<float> temperatures) : temperatures(std::move(temperatures)) {
    for (uint32_t r = 0; r < rows; r++) {
      keys.push_back({random_word(stream, 2 * r), random_word(stream, 2 * r + 1)});
      token_indices.push_back(int32_t(random_word(stream + 1, r) >> 1));
    }
  }
  std::vector<float> temperatures;
  std::vector<Key> keys;
  std::vector<int32_t> token_indices;
};

// Tokens of the CPU, with log-probabilities and entropies in double: in fp32 the sum of a long row would be less
// accurate than the kernel's.
Draws on_cpu(const std::vector<float>& logits, int64_t vocab, const Inputs& inputs) {
  Draws draws;
  std::vector<uint32_t> noise(size_t(vocab + 64));
  const auto sample = cpu::elementwise_kernels(cpu::isa()).sample;
  for (size_t r = 0; r < inputs.keys.size(); r++) {
    const float* row = &logits[r * size_t(vocab)];
    draws.tokens.push_back(sample(vocab, row, inputs.temperatures[r], inputs.keys[r], inputs.token_indices[r], noise.data()).token);
    const double temperature = inputs.temperatures[r] == 0 ? 1 : inputs.temperatures[r];
    double top = -INFINITY, total = 0, weighted = 0;
    for (int64_t j = 0; j < vocab; j++) top = std::fmax(top, double(row[j]));
    for (int64_t j = 0; j < vocab; j++) {
      const double x = (row[j] - top) / temperature, p = std::exp(x);
      total += p;
      if (p > 0) weighted += p * x;
    }
    draws.log_probs.push_back(float((row[draws.tokens.back()] - top) / temperature - std::log(total)));
    draws.entropies.push_back(float(std::log(total) - weighted / total));
  }
  return draws;
}

Draws on_gpu(const Tensor& logits, const Inputs& inputs) {
  const DeviceArray<float> temperatures(inputs.temperatures), log_probs(inputs.keys.size()), entropies(inputs.keys.size());
  const DeviceArray<Key> keys(inputs.keys);
  const DeviceArray<int32_t> token_indices(inputs.token_indices), tokens(inputs.keys.size());
  cuda::sample(logits, {temperatures.data, keys.data, token_indices.data}, tokens.data, log_probs.data, entropies.data,
               nullptr);
  return {tokens.read(), log_probs.read(), entropies.read()};
}

void compare(const std::string& what, const Draws& found, const Draws& expected) {
  for (size_t r = 0; r < expected.tokens.size(); r++) {
    CHECK(found.tokens[r] == expected.tokens[r], "%s, row %d: token %d, not %d", what.c_str(), int(r), found.tokens[r],
          expected.tokens[r]);
    const double difference = std::fabs(double(found.log_probs[r]) - expected.log_probs[r]);
    const double tolerance = 1e-6 * std::fmax(1, std::fabs(expected.log_probs[r]));
    CHECK(difference <= tolerance, "%s, row %d: %.9g, not %.9g", what.c_str(), int(r), double(found.log_probs[r]),
          double(expected.log_probs[r]));
    const double entropy = found.entropies[r], wanted = expected.entropies[r];
    CHECK(std::fabs(entropy - wanted) <= 2e-6 * std::fmax(1, wanted) && entropy >= 0, "%s, row %d: entropy %.9g, not %.9g", what.c_str(), int(r),
          entropy, wanted);
  }
}

void random_rows() {
  const std::vector<float> temperatures = {1, 0, 0.3f, 5, 1e-3f, 0.7f, 1};
  const int64_t rows = int64_t(temperatures.size());
  for (const Type type : {Type::f32, Type::bf16})
    for (const int64_t vocab : {1, 2, 5, 33, 1000, 4097, 32003, 151936})
      for (const Layout& layout : layouts) {
        if (vocab > 100000 && layout.name != layouts[0].name) continue;
        for (const double deviation : {0.1, 3.0, 12.0}) {
          if (vocab > 100000 && deviation != 3.0) continue;
          const std::string what = name_of(type) + " vocabulary of " + std::to_string(vocab) + " " + layout.name;
          DeviceMatrix logits(type, rows, vocab, layout);
          std::vector<float> values = logits.fill(uint32_t(vocab), deviation);
          // A third of the last row's tokens are impossible, in runs.
          for (int64_t j = 1; j < vocab; j++)
            if (j / 700 % 3 == 1) values[size_t((rows - 1) * vocab + j)] = -INFINITY;
          // A grammar masks every other token of the sixth row.
          for (int64_t j = 1; j < vocab; j += 2) values[size_t((rows - 2) * vocab + j)] = masked_logit;
          values = logits.fill(values);
          const Inputs inputs(rows, uint32_t(vocab), temperatures);
          compare(what, on_gpu(logits.view, inputs), on_cpu(values, vocab, inputs));
          logits.read(what);
        }
      }
  on_gpu({nullptr, Type::f32, 0, 7, 7}, Inputs(0, 1, {}));
}

// Logits that cancel the noise, so that all scores are nearly, and many exactly, equal. The CPU's score differs if it
// cannot fuse multiply-adds.
void near_ties() {
  const bool fused = cpu::isa() != cpu::Isa::portable;
  const std::vector<float> temperatures = {1, 0.5f, 2, 1};
  const int64_t rows = 4, vocab = 5003;
  for (const float offset : {0.0f, 10.0f}) {
    const Inputs inputs(rows, 77, temperatures);
    std::vector<float> values;
    for (int64_t i = 0; i < rows * vocab; i++) {
      const size_t r = size_t(i / vocab);
      const Philox words = philox(inputs.keys[r], uint32_t(i % vocab / 4), uint32_t(inputs.token_indices[r]), 0, 0);
      const double v = fine_uniform(words.word[i % vocab % 4]);
      values.push_back(offset + float(std::log(-std::log1p(-v)) * temperatures[r]));
    }
    DeviceMatrix logits(Type::f32, rows, vocab);
    logits.fill(values);
    const Draws found = on_gpu(logits.view, inputs), expected = on_cpu(values, vocab, inputs);
    if (fused) compare("near ties", found, expected);
  }
  // Equal logits: greedy decoding takes the first.
  DeviceMatrix equal(Type::bf16, 2, 3000);
  std::vector<float> values(6000, 1.5f);
  for (const size_t j : {4711, 3017, 5999}) values[j] = 2;
  equal.fill(values);
  const Draws draws = on_gpu(equal.view, Inputs(2, 5, {0, 0}));
  CHECK(draws.tokens[0] == 0 && draws.tokens[1] == 17, "%d, %d", draws.tokens[0], draws.tokens[1]);
}

// Top tokens as on the CPU, including ties, for rows of which some request none, and with one mostly masked row.
void test_top_tokens() {
  const std::vector<float> temperatures = {1, 0, 0.3f, 5, 1, 1};
  const std::vector<int32_t> counts = {20, 3, 0, 7, 20, 20};
  const int64_t rows = int64_t(counts.size()), most = 20;
  for (const Type type : {Type::f32, Type::bf16})
    for (const int64_t vocab : {1, 5, 33, 4097, 32003})
      for (const Layout& layout : layouts) {
        const std::string what = name_of(type) + " top tokens of " + std::to_string(vocab) + " " + layout.name;
        DeviceMatrix logits(type, rows, vocab, layout);
        std::vector<float> values = logits.fill(uint32_t(vocab), 3);
        for (int64_t j = 0; j < vocab; j++) {
          values[size_t(3 * vocab + j)] = std::round(values[size_t(3 * vocab + j)]);  // many ties
          if (j % 997 != 3) values[size_t(4 * vocab + j)] = masked_logit;
          if (j % 3 == 0) values[size_t(5 * vocab + j)] = -INFINITY;
        }
        values = logits.fill(values);
        const DeviceArray<float> by(temperatures), log_probs(size_t(rows * most));
        const DeviceArray<int32_t> top(counts), tokens(size_t(rows * most));
        cuda::top_tokens(logits.view, {by.data, nullptr, nullptr, top.data}, most, tokens.data, log_probs.data, nullptr);
        logits.read(what);
        const std::vector<int32_t> found = tokens.read();
        const std::vector<float> with = log_probs.read();
        for (int64_t r = 0; r < rows; r++) {
          std::vector<int32_t> wanted(most, -1);  // unchanged: all bits are set
          std::vector<float> wanted_log_probs(most);
          top_tokens(vocab, &values[size_t(r * vocab)], temperatures[size_t(r)], counts[size_t(r)], wanted.data(), wanted_log_probs.data());
          CHECK(std::equal(wanted.begin(), wanted.end(), &found[size_t(r * most)]), "%s, row %d", what.c_str(), int(r));
          for (int32_t i = 0; i < counts[size_t(r)]; i++) {
            const double is = with[size_t(r * most + i)], should = wanted_log_probs[size_t(i)];
            CHECK(is == should || std::fabs(is - should) <= 2e-6 * std::fmax(1, std::fabs(should)), "%s, row %d: %.9g, not %.9g", what.c_str(),
                  int(r), is, should);
          }
        }
      }
}

// A row with non-finite logits yields some token, and a NaN log-probability.
void test_non_finite_rows() {
  const int64_t rows = 5, vocab = 3001;
  for (const float temperature : {0.0f, 1.0f}) {
    DeviceMatrix logits(Type::f32, rows, vocab);
    std::vector<float> values = logits.fill(3, 2);
    for (int64_t j = 0; j < vocab; j++) values[size_t(j)] = -INFINITY, values[size_t(vocab + j)] = NAN;
    values[size_t(2 * vocab + 50)] = INFINITY;
    values[size_t(3 * vocab + 2999)] = NAN;
    logits.fill(values);
    const Inputs inputs(rows, 9, std::vector<float>(size_t(rows), temperature));
    const Draws found = on_gpu(logits.view, inputs);
    for (size_t r = 0; r < 4; r++) {
      CHECK(found.tokens[r] >= 0 && found.tokens[r] < vocab, "row %d: token %d", int(r), found.tokens[r]);
      CHECK(std::isnan(found.log_probs[r]) && std::isnan(found.entropies[r]), "row %d: %g and %g", int(r), double(found.log_probs[r]),
            double(found.entropies[r]));
    }
    CHECK(found.tokens[0] == 0 && found.tokens[1] == 0 && found.tokens[3] != 2999);
    const Draws expected = on_cpu(values, vocab, inputs);
    CHECK(found.tokens[4] == expected.tokens[4], "the row next to them");
  }
}

// Frequencies of the tokens of a small vocabulary: within five standard deviations of their probabilities.
void frequencies() {
  const int64_t rows = 4000, vocab = 6;
  const std::vector<float> row = {0, 1, -1, 2, -INFINITY, 0.5f};
  std::vector<float> values;
  for (int64_t r = 0; r < rows; r++) values.insert(values.end(), row.begin(), row.end());
  DeviceMatrix logits(Type::bf16, rows, vocab);
  logits.fill(values);
  const Draws draws = on_gpu(logits.view, Inputs(rows, 21, std::vector<float>(size_t(rows), 1)));
  double total = 0;
  std::vector<double> counts(size_t(vocab), 0);
  for (const float z : row) total += std::exp(z);
  for (const int32_t token : draws.tokens) counts[size_t(token)]++;
  for (size_t j = 0; j < counts.size(); j++) {
    const double p = std::exp(row[j]) / total, mean = double(rows) * p, deviation = std::sqrt(mean * (1 - p));
    CHECK(std::fabs(counts[j] - mean) <= 5 * deviation, "token %d: %g times, not %g", int(j), counts[j], mean);
  }
}

constexpr gigpo::test::Test tests[] = {
    {"random rows", random_rows}, {"near ties", near_ties}, {"top tokens", test_top_tokens}, {"non-finite rows", test_non_finite_rows}, {"frequencies", frequencies}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
