// Number formats of model files and their conversion to fp32.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bf16.h"

namespace gigpo {

// Storage types, little-endian. All except the first three are block formats of ggml.
enum class Stored : uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs };

struct BlockShape {
  int64_t elements, bytes;
};

constexpr BlockShape block_of(Stored type) {
  constexpr BlockShape shapes[] = {{1, 4},    {1, 2},     {1, 2},     {32, 18},   {32, 20},   {32, 22},  {32, 24},  {32, 34},
                                   {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210}, {32, 18}, {256, 136}};
  return shapes[int(type)];
}

// Bytes of `count` numbers. `count` is a multiple of the block size.
constexpr int64_t stored_bytes(Stored type, int64_t count) { return count / block_of(type).elements * block_of(type).bytes; }

// Converts IEEE binary16 to float without branches, including subnormals, infinities and NaN. Exponent and fraction are shifted to their
// places in a float, whose exponent is then too small by 112; an exact multiplication corrects this. For infinities and NaN the exponent
// bits are set to all ones.
inline float from_f16(uint16_t bits) {
  const uint32_t magnitude = uint32_t{bits & 0x7FFFu} << 13, special = magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(scaled | special | uint32_t{bits & 0x8000u} << 16);
}

// Converts f32, f16 or bf16 to fp32; `dequantize` supports all types. `from` need not be aligned.
inline void to_floats(const std::byte* from, Stored type, int64_t count, float* to) {
  const auto each = [&](auto convert) {
    for (int64_t i = 0; i < count; i++) {
      uint16_t bits;
      std::memcpy(&bits, from + 2 * i, 2);
      to[i] = convert(bits);
    }
  };
  if (count == 0) return;  // without numbers, the pointers may be null
  if (type == Stored::f32) std::memcpy(to, from, count * sizeof(float));
  else if (type == Stored::bf16) each([](uint16_t bits) { return from_bf16(bits); });
  else each([](uint16_t bits) { return from_f16(bits); });
}

}  // namespace gigpo
