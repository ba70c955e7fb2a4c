// AdamW's arithmetic for one weight, and how its moments are kept in bf16: rounded up or down at random, in proportion to
// how near each is, so that the mean of many roundings is the value. To the nearest, a second moment that should shrink
// by a thousandth would never move, and a small gradient would never raise one. Shared by the CPU and the CUDA device.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/bf16.h"
#include "core/random.h"

namespace gigpo {

// Four neighbouring weights share the words of one Philox call: weight e, counted in the whole model's, takes word e mod
// 4 of block e / 4, its low half for the first moment, its high half for the second.
constexpr uint32_t moment_counter = 0x6D6F6D65;  // the last word of the counter: these numbers serve nothing else
GIGPO_HOST_DEVICE inline Philox moment_noise(Key rounding, int64_t block) {
  return philox(rounding, uint32_t(block), uint32_t(uint64_t(block) >> 32), 0, moment_counter);
}

// The bits of a bf16 for `value`, with 16 random bits in `noise`. Infinities and NaN stay what they are; what is finite
// stays finite.
GIGPO_HOST_DEVICE inline uint16_t round_to_bf16(float value, uint32_t noise) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7F800000u) == 0x7F800000u) return uint16_t(bits >> 16 | ((bits & 0x007FFFFFu) != 0 ? 0x40u : 0u));
  const uint32_t rounded = (bits + (noise & 0xFFFFu)) >> 16;
  return uint16_t((rounded & 0x7F80u) == 0x7F80u ? rounded - 1 : rounded);
}

// What a step multiplies by, the same for all weights.
struct AdamWFactors {
  AdamWFactors() = default;
  template <class Step>  // AdamW of core/device.h
  explicit AdamWFactors(const Step& step)
      : gradient(step.gradient_scale),
        beta1(step.beta1),
        beta2(step.beta2),
        epsilon(step.epsilon),
        keep(1 - step.learning_rate * step.weight_decay),
        rate(step.learning_rate / step.correction1),
        root(1 / std::sqrt(step.correction2)) {}

  float gradient = 1, beta1 = 0, beta2 = 0, epsilon = 0;
  float keep = 1;  // what weight decay leaves of a weight
  float rate = 0;  // learning rate over the correction of the first moment
  float root = 1;  // makes √v what it would be corrected
};

struct AdamWElement {
  float weight, first, second;
};

// m = β₁m + (1-β₁)g, v = β₂v + (1-β₂)g², w = w(1 - ηλ) - η/c₁ · m / (√(v/c₂) + ε)
GIGPO_HOST_DEVICE inline AdamWElement adamw_element(AdamWElement at, float gradient, const AdamWFactors& by) {
  const float g = gradient * by.gradient;
  at.first = at.first * by.beta1 + g * (1 - by.beta1);
  at.second = at.second * by.beta2 + g * g * (1 - by.beta2);
  at.weight = at.weight * by.keep - at.first / (sqrtf(at.second) * by.root + by.epsilon) * by.rate;
  return at;
}

}  // namespace gigpo
