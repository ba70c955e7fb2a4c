// PPO's clipped value loss, forward and backward, with R the return, v what the critic foretells and v_old what it foretold
// before the batch's updates (as OpenAI Baselines' ppo2 and verl have it):
//   loss = ½ max((v - R)², (c - R)²),  c = v held to v_old ± clip
// `token_value_loss` is the only place where the formula stands: the kernel of this file and the value heads of both devices
// call it.
#pragma once
#include <cstdint>
#include <limits>

#include "core/kernels/clipped_surrogate.h"  // clamp

namespace gigpo {

struct TokenValueLoss {
  double loss = 0, gradient = 0;  // by v
  bool clipped = false;           // the bounded term is strictly larger: v is on the far side of its bound, and moves nothing
};

GIGPO_HOST_DEVICE inline TokenValueLoss token_value_loss(double value, double old_value, double target, double clip) {
  const double plain = value - target, bounded = clamp(value, old_value - clip, old_value + clip) - target;
  const bool clipped = bounded * bounded > plain * plain;
  const double error = clipped ? bounded : plain;
  return {0.5 * error * error, clipped ? 0 : plain, clipped};
}

// A critic's head on one hidden state.
struct ValueHeadRow {
  float target = 0;  // the return
  float old_value = 0;
};
struct ValueHeadOptions {
  bool training = false;  // else only values are wanted
  double clip = std::numeric_limits<double>::infinity();
  double weight = 1;      // of every token in the loss: 1 / tokens of the whole batch
};
struct ValueHeadResult {
  float value = 0;
  float loss = 0;  // before its weight, as is the next
  int32_t clipped = 0;
};

// Returns weight · d loss / d value.
GIGPO_HOST_DEVICE inline float value_head_row(float value, const ValueHeadRow& row, const ValueHeadOptions& options,
                                              ValueHeadResult* result) {
  *result = {value, 0, 0};
  if (!options.training) return 0;
  const TokenValueLoss token = token_value_loss(value, row.old_value, row.target, options.clip);
  *result = {value, float(token.loss), token.clipped};
  return float(options.weight * token.gradient);
}

// Arrays are [tokens].
struct ValueLossInput {
  int64_t tokens = 0;
  const double* values = nullptr;
  const double* returns = nullptr;
  const double* old_values = nullptr;  // may be null where `clip` is infinite
  const double* mask = nullptr;        // not 0 = counts; null: all do
};

// Means over the tokens that count; 0 where none does.
struct ValueLossReport {
  double loss = 0, clip_fraction = 0;
};

// `gradient` [tokens] receives d loss / d values, exactly 0 where the mask is 0. Throws Error BAD_ARGUMENT where a clip has no
// old values.
ValueLossReport value_loss(const ValueLossInput& input, double clip, double* gradient);

}  // namespace gigpo
