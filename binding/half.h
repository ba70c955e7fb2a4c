// 16-bit floats of model files to fp32.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/bf16.h"

namespace gigpo {

// IEEE binary16, subnormals, infinities and NaN included.
inline float from_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

enum class FileType { f32, f16, bf16 };

// Little-endian.
inline std::vector<float> to_floats(const std::vector<uint8_t>& bytes, FileType type) {
  const size_t width = type == FileType::f32 ? 4 : 2;
  std::vector<float> result(bytes.size() / width);
  if (width == 4) {
    std::memcpy(result.data(), bytes.data(), result.size() * 4);
    return result;
  }
  for (size_t i = 0; i < result.size(); i++) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    result[i] = type == FileType::bf16 ? from_bf16(bits) : from_f16(bits);
  }
  return result;
}

}  // namespace gigpo
