#include "core/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gigpo {
namespace {

void rescale(const std::monostate&, double /*theta*/, int64_t /*head_size*/, std::vector<double>& /*frequencies*/) {}

// Long wavelengths are stretched by `factor`, short ones unchanged, those in between interpolated.
void rescale(const Llama3Scaling& s, double /*theta*/, int64_t /*head_size*/, std::vector<double>& frequencies) {
  for (double& frequency : frequencies) {
    const double turns = s.original_max_positions * frequency / (2 * std::numbers::pi);
    const double blend = (turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
    const double kept = std::fmin(std::fmax(blend, 0), 1);
    frequency = frequency * (kept + (1 - kept) / s.factor);
  }
}

// Pairs before `low` rotate often enough to be left unchanged, those from `high` on are stretched by `factor`, those in
// between are interpolated by their index j. Pair j rotates r times over the original length L if j = D ln(L / (2π r))
// / (2 ln θ).
void rescale(const YarnScaling& s, double theta, int64_t head_size, std::vector<double>& frequencies) {
  const double size = double(head_size);
  const auto pair_that_turns = [&](double times) {
    return size * std::log(s.original_max_positions / (2 * std::numbers::pi * times)) / (2 * std::log(theta));
  };
  double low = pair_that_turns(s.beta_fast), high = pair_that_turns(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::fmax(low, 0), high = std::fmin(high, size - 1);
  if (low == high) high += 0.001;  // as in transformers
  for (size_t j = 0; j < frequencies.size(); j++) {
    const double stretched = std::clamp((double(j) - low) / (high - low), 0.0, 1.0);
    frequencies[j] = frequencies[j] / s.factor * stretched + frequencies[j] * (1 - stretched);
  }
}

}  // namespace

std::vector<double> RotaryTable::frequencies(int64_t head_size) const {
  std::vector<double> result(head_size / 2);
  for (size_t j = 0; j < result.size(); j++) result[j] = std::pow(theta, -2.0 * double(j) / double(head_size));
  std::visit([&](const auto& by) { rescale(by, theta, head_size, result); }, scaling);
  return result;
}

double RotaryTable::factor() const {
  const auto* yarn = std::get_if<YarnScaling>(&scaling);
  return yarn ? yarn->attention_factor : 1;
}

}  // namespace gigpo
