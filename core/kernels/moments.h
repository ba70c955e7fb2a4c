// AdamW update of one weight, and stochastic rounding of moments to bf16: up or down at random with probabilities such that the expected
// value is exact. With rounding to nearest, a second moment that should shrink by 0.1 % would never change, and small gradients would
// never increase one. Shared by the CPU and the CUDA device.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/bf16.h"
#include "core/random.h"

namespace gigpo {

// Random numbers of the stochastic rounding. Four adjacent weights share one Philox call: the weight with index e in the model uses word
// e mod 4 of block e / 4, the low half for the first moment, the high half for the second.
constexpr uint32_t moment_counter = 0x6D6F6D65;  // last word of the counter, which separates these numbers from others of the same key
GIGPO_HOST_DEVICE inline Philox moment_noise(Key rounding, int64_t block) {
  return philox(rounding, uint32_t(block), uint32_t(uint64_t(block) >> 32), 0, moment_counter);
}

// Stochastic rounding of `value` to bf16, with 16 random bits in `noise`. Infinities and NaN are kept; finite values stay finite.
GIGPO_HOST_DEVICE inline uint16_t round_to_bf16(float value, uint32_t noise) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7F800000u) == 0x7F800000u) return uint16_t(bits >> 16 | ((bits & 0x007FFFFFu) != 0 ? 0x40u : 0u));
  const uint32_t rounded = (bits + (noise & 0xFFFFu)) >> 16;
  return uint16_t((rounded & 0x7F80u) == 0x7F80u ? rounded - 1 : rounded);
}

// Factors of one optimizer step, equal for all weights.
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
  float keep = 1;  // factor of weight decay: 1 - learning rate · weight decay
  float rate = 0;  // learning rate / bias correction of the first moment
  float root = 1;  // 1 / √(bias correction of the second moment)
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
