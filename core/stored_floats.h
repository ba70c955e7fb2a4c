// Numbers as model files store them, to fp32.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bf16.h"

namespace gigpo {

enum class Stored : uint8_t { f32, f16, bf16 };  // little-endian

constexpr int64_t bytes_of(Stored type) { return type == Stored::f32 ? 4 : 2; }

// IEEE binary16, subnormals, infinities and NaN included, without a branch: exponent and fraction stand in their places of a float
// whose exponent is 112 too small, which an exact product mends, and that of infinities and NaN is filled up.
inline float from_f16(uint16_t bits) {
  const uint32_t magnitude = uint32_t{bits & 0x7FFFu} << 13, special = magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(scaled | special | uint32_t{bits & 0x8000u} << 16);
}

// `from` need not be aligned.
inline void to_floats(const std::byte* from, Stored type, int64_t count, float* to) {
  const auto each = [&](auto convert) {
    for (int64_t i = 0; i < count; i++) {
      uint16_t bits;
      std::memcpy(&bits, from + 2 * i, 2);
      to[i] = convert(bits);
    }
  };
  if (type == Stored::f32) std::memcpy(to, from, count * sizeof(float));
  else if (type == Stored::bf16) each([](uint16_t bits) { return from_bf16(bits); });
  else each([](uint16_t bits) { return from_f16(bits); });
}

}  // namespace gigpo
