// The sweeps over one row of logits that token_log_probs.cpp is made of, compiled once per instruction set. The
// exponentials are the whole cost: one per logit, two with an entropy bonus.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

// x = (z - max) / T, of which e^x is the softmax before its division. Subtracting first is exact for logits near the
// maximum, where the precision matters.
struct RowSums {
  double exponentials;  // Σ e^x
  double weighted;      // Σ e^x x
};

struct RowSweeps {
  // NaN is passed over here; it shows in the sums.
  float (*max)(int64_t vocab, const float* z);
  // `keep` [vocab] receives e^x where it is not null; it may be z itself.
  RowSums (*sums)(int64_t vocab, const float* z, float max, float inverse_temperature, float* keep);
  // z *= factor
  void (*scale)(int64_t vocab, float* z, float factor);
  // z = e^x (constant + slope x)
  void (*linear)(int64_t vocab, float* z, float max, float inverse_temperature, float constant, float slope);
};

GIGPO_KERNEL_TABLE(RowSweeps, row_sweeps)

}  // namespace gigpo::cpu
