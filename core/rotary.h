// Rotary positions: the frequencies of a table, and the factor of its cosines and sines.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

namespace gigpo {

// How a model's frequencies are changed so that it reads longer texts than it was trained on; formulas of transformers' modeling_rope_utils.
struct Llama3Scaling {
  double factor, low_frequency_factor, high_frequency_factor, original_max_positions;
};
// YaRN (arXiv 2309.00071). `attention_factor` is of cosines and sines, so that scores have its square.
struct YarnScaling {
  double factor, attention_factor, beta_fast, beta_slow, original_max_positions;
  bool truncate;  // the bounds of the ramp are whole numbers
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
