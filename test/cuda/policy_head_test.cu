// Kernels of the head (cuda/policy_head.cu) against sums in double precision: at the vocabularies of Qwen2.5, at each
// size where another block shape or code path begins, with more rows than blocks, and with numerically hard logits.
// Without a GPU it is skipped, with the reason.
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/kernels/token_log_probs.h"
#include "core/random.h"
#include "cuda/check.h"
#include "cuda/kernels.h"
#include "test/core/check.h"
#include "test/cuda/logits.h"
#include "test/cuda/on_card.h"

using namespace gigpo;

namespace {

using test::as_float, test::from_float, test::inf, test::nan;

constexpr float lowest = std::numeric_limits<float>::lowest();

// Rows of logits on the device, `shift` elements after an aligned address, between two guard bands.
template <class Logit>
class DeviceRows {
 public:
  DeviceRows(const std::vector<Logit>& values, int64_t shift = 0) : count(values.size()), start(band + size_t(shift)) {
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), bytes()));
    CUDA_CHECK(cudaMemset(memory, 0xFF, bytes()));
    CUDA_CHECK(cudaMemcpy(data(), values.data(), count * sizeof(Logit), cudaMemcpyHostToDevice));
  }
  ~DeviceRows() { cudaFree(memory); }
  DeviceRows(const DeviceRows&) = delete;

  Logit* data() const { return memory + start; }
  std::vector<Logit> read() const {
    std::vector<Logit> all(count + 2 * start);
    CUDA_CHECK(cudaMemcpy(all.data(), memory, bytes(), cudaMemcpyDeviceToHost));
    const auto untouched = [&](size_t from, size_t to) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(all.data());
      return std::all_of(bytes + from * sizeof(Logit), bytes + to * sizeof(Logit),
                         [](uint8_t byte) { return byte == 0xFF; });
    };
    CHECK(untouched(0, start) && untouched(start + count, all.size()), "written outside of the logits");
    return {all.begin() + std::ptrdiff_t(start), all.begin() + std::ptrdiff_t(start + count)};
  }

 private:
  static constexpr size_t band = 64;
  size_t bytes() const { return (count + 2 * start) * sizeof(Logit); }
  size_t count, start;
  Logit* memory = nullptr;
};

template <class T>
struct DeviceArray {
  explicit DeviceArray(const std::vector<T>& values) : count(values.size()) {
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
    CUDA_CHECK(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  std::vector<T> read() const {
    std::vector<T> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  size_t count;
  T* data = nullptr;
};

uint32_t random_word(uint32_t stream, uint32_t i) { return philox({5, 11}, i, stream, 0, 0).word[0]; }

float random_normal(uint32_t stream, uint32_t i, double deviation) {
  const Philox words = philox({8, 3}, i, stream, 0, 0);
  return float(deviation * std::sqrt(-2 * std::log(double(open_uniform(words.word[0])))) *
               std::cos(6.283185307179586 * double(open_uniform(words.word[1]))));
}

// Normally distributed logits, one in sixteen impossible, occasionally one far above the others.
template <class Logit>
std::vector<Logit> random_logits(int64_t rows, int64_t vocab) {
  static const std::vector<float> drawn = [] {
    std::vector<float> values;
    for (uint32_t i = 0; i < 65521; i++) {
      const uint32_t kind = random_word(1, i);
      values.push_back(kind % 16 == 0 ? -inf : random_normal(2, i, 2.5) + (kind % 4096 == 1 ? 12.0f : 0.0f));
    }
    return values;
  }();
  std::vector<Logit> logits(size_t(rows * vocab));
  for (int64_t row = 0; row < rows; row++)
    for (int64_t j = 0; j < vocab; j++) {
      const float z = drawn[size_t(row * 7919 + j) % drawn.size()];
      logits[size_t(row * vocab + j)] = from_float<Logit>(j == 0 && z == -inf ? 0 : z);
    }
  return logits;
}

std::vector<PolicyHeadRow> random_inputs(int64_t rows, int64_t vocab, bool with_unused) {
  std::vector<PolicyHeadRow> inputs;
  for (uint32_t i = 0; i < rows; i++) {
    const auto token = int32_t(random_word(3, i) % uint64_t(vocab));
    inputs.push_back({i % 3 == 1 ? int32_t(vocab - 1) : token, 0.25f + float(i % 5), random_normal(4, i, 1),
                      random_normal(5, i, 1) - 9, random_normal(6, i, 1) - 9, random_normal(7, i, 1), random_normal(8, i, 1)});
    if (!with_unused) continue;
    if (i % 5 == 2) inputs.back().weight = 0;
    if (i % 7 == 3) inputs.back().token = i % 2 ? -1 : int32_t(vocab);
  }
  return inputs;
}

PolicyHeadOptions options_of(HeadMode mode, double entropy_weight, double temperature = 0.8) {
  PolicyHeadOptions options;
  options.mode = mode;
  options.temperature = temperature;
  options.entropy_weight = entropy_weight;
  options.has_reference = true;
  options.has_entropy_gradient = mode == HeadMode::linear && entropy_weight != 0;
  options.loss.kl_weight = 0.1;
  return options;
}

bool near(double value, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(value);
  return value == expected || std::abs(value - expected) <= tolerance * std::fmax(1.0, std::abs(expected));
}

bool near(const PolicyHeadResult& a, const PolicyHeadResult& b) {
  return near(a.log_prob, b.log_prob, 2e-6) && near(a.entropy, b.entropy, 3e-6) && near(a.loss, b.loss, 2e-5) &&
         near(a.kl, b.kl, 2e-4) && near(a.ratio, b.ratio, 2e-5) && a.clipped == b.clipped &&
         a.dual_clipped == b.dual_clipped;
}

// Checks one row in double precision; returns false if a logit is wrong, and `wrong` receives the first. `found`
// contains gradients, or the logits themselves.
template <class Gradient, class Logit>
bool row_matches(int64_t vocab, const Logit* z, const PolicyHeadRow& input, const PolicyHeadOptions& options,
                 const Logit* found_logits, const PolicyHeadResult& found_result, int64_t* wrong) {
  const auto* const found = reinterpret_cast<const Gradient*>(found_logits);
  *wrong = -1;
  const auto all = [&](auto right) {
    for (int64_t j = 0; j < vocab; j++)
      if (!right(j)) return *wrong = j, false;
    return true;
  };
  const auto has = [&](float value) { return all([&](int64_t j) { return as_float(found[j]) == value; }); };
  const auto has_nan = [&] { return all([&](int64_t j) { return std::isnan(as_float(found[j])); }); };
  const auto same = [&] { return all([&](int64_t j) { return std::memcmp(z + j, found_logits + j, sizeof *z) == 0; }); };
  const bool training = options.mode != HeadMode::score;
  if (training && input.weight == 0) return has(0) && near(found_result, {});
  if (input.token < 0 || input.token >= vocab) {
    PolicyHeadResult result;
    result.log_prob = result.entropy = result.loss = result.kl = result.ratio = nan;
    return (training ? has_nan() : same()) && near(found_result, result);
  }
  double max = -inf, sum = 0, weighted = 0;
  for (int64_t j = 0; j < vocab; j++) max = std::fmax(max, as_float(z[j]));
  const auto x = [&](int64_t j) { return (double(as_float(z[j])) - max) / options.temperature; };
  for (int64_t j = 0; j < vocab; j++) {
    const double e = std::exp(x(j));
    sum += e;
    weighted += e == 0 ? 0 : e * x(j);
  }
  const double log_sum = std::log(sum), log_prob = x(input.token) - log_sum, entropy = log_sum - weighted / sum;
  PolicyHeadResult result;
  const HeadRowGradient g = head_row_loss(log_prob, entropy, input, options, &result);
  if (!near(found_result, result)) return false;
  if (!training) return same();
  if (!std::isfinite(sum) || sum == 0) return has_nan();
  // A loss of large terms that nearly cancel has the errors of the terms.
  double terms = std::abs(g.token);
  if (options.mode == HeadMode::policy) {
    const double d = double(input.reference_log_prob) - log_prob;
    const double growth = std::abs(kl_estimate(d, options.loss.kl_estimator).gradient);
    terms += double(input.weight) / options.temperature *
             (result.ratio * std::abs(input.advantage) + options.loss.kl_weight * (1 + growth));
  }
  return all([&](int64_t j) {
    const double p = std::exp(x(j) - log_sum), log_p = std::fmax(x(j) - log_sum, -1e30), chosen = j == input.token;
    const double expected = g.token * (chosen - p) + g.entropy * p * (log_p + entropy);
    const double bonus = std::abs(g.entropy) * (std::abs(log_p) + entropy), size = terms * (chosen + p) + bonus * p;
    const double rounding = std::is_same_v<Gradient, float> ? 0 : 1.0 / 256;
    const double tolerance = (4e-6 + 2e-7 * std::fmin(-x(j), 200)) * size + rounding * std::abs(expected) +
                             3e-38 * (terms + bonus);  // loss where 2^y would be below 2^-126
    return std::abs(double(as_float(found[j])) - expected) <= tolerance;
  });
}

template <class Logit>
struct Outcome {
  std::vector<Logit> memory;
  std::vector<PolicyHeadResult> results;

  template <class Gradient>
  const Gradient* row(size_t i) const {
    return reinterpret_cast<const Gradient*>(&memory[i * (memory.size() / results.size())]);
  }
};

template <class Gradient, class Logit>
Outcome<Logit> run(int64_t vocab, const std::vector<Logit>& logits, const std::vector<PolicyHeadRow>& inputs,
                   const PolicyHeadOptions& options, int64_t shift = 0, int multiprocessors = 0) {
  const DeviceRows<Logit> rows(logits, shift);
  const DeviceArray<PolicyHeadRow> device_inputs(inputs);
  PolicyHeadResult unwritten;
  unwritten.log_prob = unwritten.entropy = -77;
  const DeviceArray<PolicyHeadResult> results(std::vector<PolicyHeadResult>(inputs.size(), unwritten));
  test::policy_head_chunk_of<Gradient>(int64_t(inputs.size()), vocab, rows.data(), device_inputs.data, options, results.data, nullptr,
                                       multiprocessors);
  return {rows.read(), results.read()};
}

template <class Gradient, class Logit>
void check_rows(int64_t vocab, const std::vector<Logit>& logits, const std::vector<PolicyHeadRow>& inputs,
                const PolicyHeadOptions& options, int64_t shift = 0) {
  const Outcome<Logit> found = run<Gradient>(vocab, logits, inputs, options, shift);
  for (size_t i = 0; i < inputs.size(); i++) {
    const Logit* z = logits.data() + int64_t(i) * vocab;
    int64_t wrong = -1;
    const bool matches =
        row_matches<Gradient>(vocab, z, inputs[i], options, found.template row<Logit>(i), found.results[i], &wrong);
    CHECK(matches, "vocab %d, mode %d, row %d: logit %d, %g became %g", int(vocab), int(options.mode), int(i), int(wrong),
          wrong < 0 ? 0.0f : as_float(z[wrong]), wrong < 0 ? 0.0f : as_float(found.template row<Gradient>(i)[wrong]));
  }
}

// Capacity of a block of cuda/policy_head.cu on this GPU, in packs of 16 bytes, and the number of concurrent blocks.
struct Block {
  int threads, kept, blocks;
  int64_t registers() const { return threads * kept; }
  int64_t limit() const {
    return registers() + ((attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) + 1024) / blocks - 1536) / 16;
  }
  int64_t resident() const { return int64_t{attribute(cudaDevAttrMultiProcessorCount)} * blocks; }

  static int attribute(cudaDeviceAttr which) {
    int device, value;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
  }
};
constexpr Block blocks[] = {{32, 4, 16}, {128, 8, 4}, {256, 8, 2}, {512, 10, 1}, {512, 18, 1}};

template <class Logit>
constexpr int64_t pack = 16 / int64_t(sizeof(Logit));

// bf16 rows are held on the chip, fp32 rows are read twice.
template <class Logit, class Gradient = Logit>
void test_real_vocabularies() {
  for (const int64_t vocab : {151936, 152064})
    for (const HeadMode mode : {HeadMode::policy, HeadMode::sft, HeadMode::score}) {
      const std::vector<PolicyHeadRow> inputs = random_inputs(4, vocab, true);
      check_rows<Gradient>(vocab, random_logits<Logit>(4, vocab), inputs, options_of(mode, mode == HeadMode::policy ? 0.05 : 0));
    }
}

template <class Logit, class Gradient = Logit>
void boundaries() {
  std::vector<int64_t> packs = {1, 2, 31, 32, 33, 63};
  // Static and dynamic shared memory together exceed 48 KB, dynamic memory alone does not.
  constexpr int64_t without_asking = (48 << 10) / 16;
  for (const Block& block : blocks)
    for (const int64_t size : {block.registers(), block.registers() + without_asking, block.limit()})
      for (const int64_t more : {-1, 0, 1}) packs.push_back(size + more);
  bool entropy = false;
  for (const int64_t count : packs) {
    const int64_t vocab = count * pack<Logit>;
    entropy = !entropy;
    check_rows<Gradient>(vocab, random_logits<Logit>(3, vocab), random_inputs(3, vocab, false),
               options_of(HeadMode::policy, entropy ? 0.05 : 0));
  }
  for (const int64_t vocab : {1, 2, 7, 1001, 4097})
    for (const HeadMode mode : {HeadMode::score, HeadMode::policy, HeadMode::sft, HeadMode::linear})
      check_rows<Gradient>(vocab, random_logits<Logit>(9, vocab), random_inputs(9, vocab, true), options_of(mode, 0.02));
}

// Blocks that process several rows, with used and unused rows in every order.
template <class Logit, class Gradient = Logit>
void many_rows() {
  int64_t smallest = 40;
  for (const Block& block : blocks) {
    const int64_t vocab = smallest * pack<Logit>, rows = block.resident() * (smallest == 40 ? 3 : 1) + 30;
    if (block.limit() >= smallest)
      check_rows<Gradient>(vocab, random_logits<Logit>(rows, vocab), random_inputs(rows, vocab, true),
                 options_of(HeadMode::policy, block.threads == 128 ? 0 : 0.03));
    smallest = std::max(smallest, block.limit() + 1);
    if (block.threads == 512) break;
  }
}

// Limiting the multiprocessors, so that blocks iterate over rows, changes no bit: for rows that are held, read twice,
// and scored.
template <class Logit, class Gradient = Logit>
void few_multiprocessors() {
  for (const int64_t vocab : {40 * pack<Logit>, int64_t{1001}})
    for (const HeadMode mode : {HeadMode::policy, HeadMode::score}) {
      const std::vector<Logit> logits = random_logits<Logit>(70, vocab);
      const std::vector<PolicyHeadRow> inputs = random_inputs(70, vocab, true);
      const Outcome<Logit> all = run<Gradient>(vocab, logits, inputs, options_of(mode, 0.02));
      const Outcome<Logit> few = run<Gradient>(vocab, logits, inputs, options_of(mode, 0.02), 0, 2);
      const auto same = [](const auto& a, const auto& b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0; };
      CHECK(same(few.memory, all.memory), "vocab %d, mode %d", int(vocab), int(mode));
      for (size_t i = 0; i < inputs.size(); i++)
        CHECK(std::memcmp(&few.results[i].log_prob, &all.results[i].log_prob, sizeof(float)) == 0 &&
                  std::memcmp(&few.results[i].entropy, &all.results[i].entropy, sizeof(float)) == 0,
              "vocab %d, row %d", int(vocab), int(i));
    }
}

// Unaligned logits are read twice.
template <class Logit, class Gradient = Logit>
void paths_agree() {
  for (const int64_t packs : {50, 1000, 3000, 7001, 15000}) {
    const int64_t vocab = packs * pack<Logit>;
    const std::vector<Logit> logits = random_logits<Logit>(2, vocab);
    const std::vector<PolicyHeadRow> inputs = random_inputs(2, vocab, false);
    const PolicyHeadOptions options = options_of(HeadMode::policy, 0);
    const Outcome<Logit> held = run<Gradient>(vocab, logits, inputs, options), twice = run<Gradient>(vocab, logits, inputs, options, 1);
    // Without an entropy bonus nothing cancels except at the chosen token: a few roundings of fp32, or the last digit
    // of bf16.
    const double tolerance = std::is_same_v<Gradient, float> ? 3e-6 : 1.0 / 128;
    for (size_t i = 0; i < logits.size(); i++) {
      if (int64_t(i) % vocab == inputs[i / size_t(vocab)].token) continue;
      const auto gradient = [&](const Outcome<Logit>& of) {
        return double(as_float(of.template row<Gradient>(i / size_t(vocab))[i % size_t(vocab)]));
      };
      const double a = gradient(held), b = gradient(twice);
      CHECK(std::abs(a - b) <= tolerance * std::abs(b), "vocab %d, logit %d: %g, not %g", int(vocab), int(i), a, b);
    }
    for (size_t i = 0; i < inputs.size(); i++) CHECK(near(held.results[i], twice.results[i]), "vocab %d", int(vocab));
  }
}

// Rows that are hard for sums whose origin is not the row's maximum.
template <class Logit, class Gradient = Logit>
void hard_logits() {
  constexpr int64_t kinds = 12;
  for (const int64_t vocab : {64, 4096, 40000, 80000})
    for (const double temperature : {1.0, 0.05, 20.0})
      for (const int64_t shift : {0, 1}) {
        std::vector<Logit> logits = random_logits<Logit>(kinds, vocab);
        std::vector<PolicyHeadRow> inputs = random_inputs(kinds, vocab, false);
        const auto set = [&](int64_t row, int64_t from, int64_t to, auto value) {
          for (int64_t j = from; j < to; j++) logits[size_t(row * vocab + j)] = from_float<Logit>(float(value(j)));
        };
        set(0, 0, vocab, [](int64_t) { return -inf; });
        set(1, 0, vocab, [](int64_t) { return lowest; });  // -inf in bf16
        set(2, 0, vocab, [](int64_t) { return 3e38f; });
        set(3, 0, vocab - 1, [](int64_t) { return lowest; });
        set(4, 0, vocab / 2, [](int64_t) { return -inf; });
        set(5, vocab - 1, vocab, [](int64_t) { return nan; });
        set(6, vocab / 2, vocab / 2 + 1, [](int64_t) { return inf; });
        set(7, 0, vocab, [&](int64_t j) { return 300.0 * double(j) / double(vocab); });  // increasing: the origin moves
        set(8, 0, vocab, [&](int64_t j) { return -300.0 * double(j) / double(vocab); });
        set(9, 0, vocab, [](int64_t j) { return 1000 + j % 9; });
        set(10, vocab - 1, vocab, [](int64_t) { return 90; });
        set(11, 0, vocab / 2, [](int64_t) { return lowest; });
        inputs[3].token = inputs[10].token = int32_t(vocab - 1);
        check_rows<Gradient>(vocab, logits, inputs, options_of(HeadMode::linear, 0.05, temperature), shift);
        check_rows<Gradient>(vocab, logits, inputs, options_of(HeadMode::score, 0, temperature), shift);
      }
}

void no_rows() {
  cuda::policy_head_chunk(0, 8, static_cast<float*>(nullptr), Type::f32, nullptr, PolicyHeadOptions(), nullptr, nullptr);
  CUDA_CHECK(cudaGetLastError());
}

constexpr gigpo::test::Test tests[] = {{"bf16 at the vocabularies of Qwen2.5", test_real_vocabularies<__nv_bfloat16>},
                          {"fp32 at the vocabularies of Qwen2.5", test_real_vocabularies<float>},
                          {"fp32 to bf16 at the vocabularies of Qwen2.5", test_real_vocabularies<float, __nv_bfloat16>},
                          {"bf16 at the boundaries of code paths", boundaries<__nv_bfloat16>},
                          {"fp32 at the boundaries of code paths", boundaries<float>},
                          {"fp32 to bf16 at the boundaries of code paths", boundaries<float, __nv_bfloat16>},
                          {"more bf16 rows than blocks", many_rows<__nv_bfloat16>},
                          {"more fp32 rows than blocks", many_rows<float>},
                          {"more rows than blocks, fp32 to bf16", many_rows<float, __nv_bfloat16>},
                          {"few multiprocessors for bf16", few_multiprocessors<__nv_bfloat16>},
                          {"few multiprocessors for fp32", few_multiprocessors<float>},
                          {"few multiprocessors, fp32 to bf16", few_multiprocessors<float, __nv_bfloat16>},
                          {"bf16 held and read twice", paths_agree<__nv_bfloat16>},
                          {"fp32 held and read twice", paths_agree<float>},
                          {"fp32 to bf16 held and read twice", paths_agree<float, __nv_bfloat16>},
                          {"hard bf16 logits", hard_logits<__nv_bfloat16>},
                          {"hard fp32 logits", hard_logits<float>},
                          {"hard logits, fp32 to bf16", hard_logits<float, __nv_bfloat16>},
                          {"no rows", no_rows}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
