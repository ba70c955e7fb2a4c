// PPO's clipped value loss, forward and backward, as in ppo2 of OpenAI Baselines and in verl. R is the return, v the prediction of the
// critic, v_old its prediction before the updates on the batch:
//   loss = ½ max((v - R)², (c - R)²),  c = v clamped to v_old ± clip
// `token_value_loss` is the single implementation of the formula: the kernel of this file and the value heads of both devices call it.
#pragma once
#include <cstdint>
#include <limits>

#include "core/kernels/clipped_surrogate.h"  // clamp

namespace gigpo {

struct TokenValueLoss {
  double loss = 0, gradient = 0;  // gradient with respect to v
  bool clipped = false;           // the clipped term is strictly larger, so the gradient is 0
};

GIGPO_HOST_DEVICE inline TokenValueLoss token_value_loss(double value, double old_value, double target, double clip) {
  const double plain = value - target, bounded = clamp(value, old_value - clip, old_value + clip) - target;
  const bool clipped = bounded * bounded > plain * plain;
  const double error = clipped ? bounded : plain;
  return {0.5 * error * error, clipped ? 0 : plain, clipped};
}

// Inputs of the critic head for one token.
struct ValueHeadRow {
  float target = 0;  // the return
  float old_value = 0;
};
struct ValueHeadOptions {
  bool training = false;  // false: compute only values
  double clip = std::numeric_limits<double>::infinity();
  double weight = 1;      // weight of every token in the loss: 1 / tokens of the whole batch
};
struct ValueHeadResult {
  float value = 0;
  float loss = 0;  // before multiplication by the weight
  int32_t clipped = 0;
};

// Computes the result of one token. Returns weight · d loss / d value, 0 unless training.
GIGPO_HOST_DEVICE inline float value_head_row(float value, const ValueHeadRow& row, const ValueHeadOptions& options,
                                              ValueHeadResult* result) {
  *result = {value, 0, 0};
  if (!options.training) return 0;
  const TokenValueLoss token = token_value_loss(value, row.old_value, row.target, options.clip);
  *result = {value, float(token.loss), token.clipped};
  return float(options.weight * token.gradient);
}

// Inputs of value_loss; arrays are [tokens].
struct ValueLossInput {
  int64_t tokens = 0;
  const double* values = nullptr;
  const double* returns = nullptr;
  const double* old_values = nullptr;  // may be null if `clip` is infinite
  const double* mask = nullptr;        // nonzero: active token; null: all are active
};

// Means over the active tokens; 0 without any.
struct ValueLossReport {
  double loss = 0, clip_fraction = 0;
};

// Mean value loss. `gradient` [tokens] receives d loss / d values, exactly 0 where the mask is 0. Throws Error BAD_ARGUMENT if `clip` is
// finite and there are no old values.
ValueLossReport value_loss(const ValueLossInput& input, double clip, double* gradient);

}  // namespace gigpo
