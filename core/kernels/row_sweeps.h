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

// What makes √p of a logit: e^((z - max) / 2T - shift), with shift = ½ log Σ e^x.
struct RootScale {
  float max, shift;
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
  // Σ (√p - √q)² of the distributions of two rows.
  double (*root_distance)(int64_t vocab, const float* z, RootScale of_z, const float* w, RootScale of_w, float inverse_temperature);
};

GIGPO_KERNEL_TABLE(RowSweeps, row_sweeps)

}  // namespace gigpo::cpu
