// Results about whole distributions, and gradients by other tokens than the sampled ones, against the CPU's kernels:
// for vocabularies with and without packed access, in both types.
#include "core/bf16.h"
#include "core/device.h"
#include "core/kernels/hellinger.h"
#include "cuda/kernels.h"
#include "cuda/operations.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;

namespace {

// Rows that are equal, nearly equal, far apart, and with impossible tokens, in all layouts.
void distances() {
  const int64_t rows = 6;
  for (const Type type : {Type::f32, Type::bf16})
    for (const int64_t vocab : {1, 5, 33, 4096, 32003})
      for (const double temperature : {1.0, 0.4})
        for (const Layout& layout : layouts) {
          const std::string what = name_of(type) + " " + std::to_string(vocab) + " " + layout.name;
          DeviceMatrix logits(type, rows, vocab, layout), others(type, rows, vocab, layout);
          std::vector<float> z = logits.fill(uint32_t(vocab), 3), w = z;
          for (int64_t j = 0; j < vocab; j++) {
            const auto in_row = [&](int64_t r) { return size_t(r * vocab + j); };
            const float noise = normal(5, uint32_t(j), 1);
            w[in_row(1)] += 0.02f * noise, w[in_row(2)] += noise, w[in_row(3)] += 30 * noise;
            if (j % 3 == 1) z[in_row(4)] = w[in_row(4)] = masked_logit, z[in_row(2)] = -INFINITY;
            if (j == vocab / 2) w[in_row(5)] = NAN;
          }
          z = logits.fill(z), w = others.fill(w);
          const DeviceArray<float> found(static_cast<size_t>(rows));
          cuda::hellinger(logits.view, others.view, temperature, found.data, nullptr);
          logits.read(what), others.read(what);
          const std::vector<float> distances = found.read();
          for (int64_t r = 0; r < rows; r++) {
            const float wanted = hellinger(vocab, &z[size_t(r * vocab)], &w[size_t(r * vocab)], temperature), is = distances[size_t(r)];
            if (r == 5) CHECK(std::isnan(is) && std::isnan(wanted), "%s: %g", what.c_str(), double(is));
            else CHECK(std::fabs(is - wanted) <= 1e-6f + 3e-6f * wanted, "%s, row %d: %g, not %g", what.c_str(), int(r), double(is), double(wanted));
            if (r == 0 || r == 4) CHECK(is == 0, "%s: distance %g of equal rows", what.c_str(), double(is));
          }
        }
}

struct Head {
  std::vector<float> logits, of_others;  // the logits, or their gradient
  std::vector<PolicyHeadResult> results;
};

struct Inputs {
  std::vector<PolicyHeadRow> rows;
  int64_t count;
  std::vector<int32_t> tokens;
  std::vector<float> gradients;
};

Head on_device(Device& device, const std::vector<float>& logits, int64_t vocab, const PolicyHeadOptions& options, const Inputs& inputs) {
  const auto rows = int64_t(inputs.rows.size());
  std::vector<void*> taken;
  const auto upload = [&](const auto& values) {
    taken.push_back(device.allocate(values.size() * sizeof(values[0])));
    device.upload(taken.back(), values.data(), values.size() * sizeof(values[0]));
    return taken.back();
  };
  Head head{logits, std::vector<float>(inputs.tokens.size(), NAN), std::vector<PolicyHeadResult>(inputs.rows.size())};
  const Tensor matrix{upload(logits), Type::f32, rows, vocab, vocab};
  const HeadTokens others{inputs.count, static_cast<int32_t*>(upload(inputs.tokens)), static_cast<float*>(upload(inputs.gradients)),
                          static_cast<float*>(upload(head.of_others))};
  auto* results = static_cast<PolicyHeadResult*>(upload(head.results));
  device.policy_head(matrix, static_cast<PolicyHeadRow*>(upload(inputs.rows)), options, results, others);
  device.download(head.results.data(), results, head.results.size() * sizeof(PolicyHeadResult));
  device.download(head.of_others.data(), others.log_probs, head.of_others.size() * sizeof(float));
  device.download(head.logits.data(), matrix.data, head.logits.size() * sizeof(float));
  if (options.mode != HeadMode::score && device.activation_type() == Type::bf16) {
    for (int64_t r = 0; r < rows; r++) {  // half as wide, at the start of the row
      std::vector<uint16_t> halves(static_cast<size_t>(vocab));
      std::memcpy(halves.data(), &head.logits[size_t(r * vocab)], halves.size() * sizeof(uint16_t));
      for (int64_t j = 0; j < vocab; j++) head.logits[size_t(r * vocab + j)] = from_bf16(halves[size_t(j)]);
    }
  }
  for (void* memory : taken) device.release(memory);
  return head;
}

void other_tokens() {
  const auto cpu = make_cpu_device(1);
  for (const Type type : {Type::f32, Type::bf16}) {
    const auto gpu = make_cuda_device({.precision = type});
    for (const int64_t vocab : {7, 515, 1024, 4100})
      for (const int64_t count : {int64_t{1}, int64_t{5}})
        for (const int mode : {0, 1, 2}) {
          const std::string what = name_of(type) + " of " + std::to_string(vocab) + ", mode " + std::to_string(mode);
          const int64_t rows = 70;
          Inputs inputs{{}, count, {}, {}};
          std::vector<float> logits;
          for (int64_t i = 0; i < rows * vocab; i++) logits.push_back(i % 11 == 3 ? masked_logit : normal(9, uint32_t(i), 2));
          for (int64_t r = 0; r < rows; r++) {
            PolicyHeadRow row{.token = int32_t(r % vocab), .weight = r == 4 && mode > 0 ? 0.f : 0.1f, .gradient = normal(1, uint32_t(r), 1),
                              .entropy_gradient = normal(2, uint32_t(r), 0.1)};
            if (r == 5) row.token = int32_t(vocab);
            logits[size_t(r * vocab + r % vocab)] = normal(3, uint32_t(r), 2);  // the sampled token must be possible
            for (int64_t i = 0; i < count; i++) {
              const bool none = mode > 0 && i == 1, sampled = i == 2;
              inputs.tokens.push_back(none ? -1 : sampled ? row.token % int32_t(vocab) : int32_t((r + 3 * i + 1) % vocab));
              inputs.gradients.push_back(none ? NAN : normal(4, uint32_t(inputs.tokens.size()), 1));
              if (!none) row.others_gradient += inputs.gradients.back();
            }
            inputs.rows.push_back(row);
          }
          PolicyHeadOptions options;
          options.mode = mode == 0 ? HeadMode::score : HeadMode::linear;
          options.temperature = 0.7, options.has_entropy_gradient = mode == 2;
          const Head wanted = on_device(*cpu, logits, vocab, options, inputs), found = on_device(*gpu, logits, vocab, options, inputs);
          const auto alike = [&](const std::vector<float>& is, const std::vector<float>& should, double rounding, const char* which) {
            for (size_t i = 0; i < should.size(); i++) {
              if (std::isnan(should[i]) && std::isnan(is[i])) continue;
              const double size = std::fabs(should[i]);
              if (!CHECK(std::fabs(is[i] - should[i]) <= 4e-6 * std::fmax(1, size) + rounding * size, "%s, %s %d: %g, not %g", what.c_str(), which,
                         int(i), double(is[i]), double(should[i])))
                return;
            }
          };
          if (mode == 0) alike(found.of_others, wanted.of_others, 0, "token");
          alike(found.logits, wanted.logits, mode > 0 && type == Type::bf16 ? 1.0 / 256 : 0, "logit");
        }
  }
}

constexpr gigpo::test::Test tests[] = {{"distances", distances}, {"other tokens", other_tokens}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
