// Rotary positions: the frequencies of a table, and the factor of its cosines and sines.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

namespace gigpo {

// Changes of a model's frequencies for longer texts than it was trained on; formulas of transformers'
// modeling_rope_utils.
struct Llama3Scaling {
  double factor, low_frequency_factor, high_frequency_factor, original_max_positions;
};
// YaRN (arXiv 2309.00071). `attention_factor` multiplies cosines and sines, so attention scores get its square.
struct YarnScaling {
  double factor, attention_factor, beta_fast, beta_slow, original_max_positions;
  bool truncate;  // rounds the bounds of the ramp to integers
};
using RopeScaling = std::variant<std::monostate, Llama3Scaling, YarnScaling>;

struct RotaryTable {
  double theta = 0;
  RopeScaling scaling = {};

  // [head_size / 2]
  std::vector<double> frequencies(int64_t head_size) const;
  double factor() const;
};

}  // namespace gigpo
