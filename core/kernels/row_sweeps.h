// Loops over one row of logits for token_log_probs.cpp, compiled once per instruction set. The cost is dominated by exponentials: one per
// logit, two with an entropy bonus.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

// Sums of a row, with x = (z - max) / T, so that e^x is the unnormalised softmax. The subtraction is exact for logits near the maximum,
// where precision matters.
struct RowSums {
  double exponentials;  // Σ e^x
  double weighted;      // Σ e^x x
};

// Constants for the square root of a probability: √p = e^((z - max) / 2T - shift), with shift = ½ log Σ e^x.
struct RootScale {
  float max, shift;
};

struct RowSweeps {
  // Maximum of a row. NaN is ignored here and appears in the sums.
  float (*max)(int64_t vocab, const float* z);
  // Sums of a row. `keep` [vocab] receives e^x unless null; may be z itself.
  RowSums (*sums)(int64_t vocab, const float* z, float max, float inverse_temperature, float* keep);
  // z *= factor
  void (*scale)(int64_t vocab, float* z, float factor);
  // z = e^x (constant + slope x)
  void (*linear)(int64_t vocab, float* z, float max, float inverse_temperature, float constant, float slope);
  // Σ (√p - √q)² of the distributions of two rows.
  double (*root_distance)(int64_t vocab, const float* z, RootScale of_z, const float* w, RootScale of_w, float inverse_temperature);
};

GIGPO_KERNEL_TABLE(RowSweeps, row_sweeps)

}  // namespace gigpo::cpu
