// Conversions between float and bfloat16. A bfloat16 is stored as its 16 bits: the upper half of a float.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/random.h"

namespace gigpo {

GIGPO_HOST_DEVICE inline float from_bf16(uint16_t half) {
  const uint32_t bits = uint32_t(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to nearest, ties to even. NaN stays NaN.
GIGPO_HOST_DEVICE inline uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (value != value) return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace gigpo
