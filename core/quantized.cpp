#include "core/quantized.h"

#include <array>

namespace gigpo {
namespace {

using Bytes = const uint8_t*;

float half_at(Bytes from) {
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return from_f16(bits);
}

// Values of the four bits of IQ4_NL and IQ4_XS.
constexpr std::array<float, 16> nonlinear{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 16 bytes: the low halves are the first 16 values, the high halves the last.
template <class Value>
void halves(Bytes packed, float* to, Value value) {
  for (int i = 0; i < 16; i++) {
    to[i] = value(packed[i] & 15, i);
    to[i + 16] = value(packed[i] >> 4, i + 16);
  }
}

void q4_0(Bytes block, float* to) {  // scale, 32 × 4 bits
  const float scale = half_at(block);
  halves(block + 2, to, [&](int q, int) { return float(q - 8) * scale; });
}

void q4_1(Bytes block, float* to) {  // scale, minimum, 32 × 4 bits
  const float scale = half_at(block), least = half_at(block + 2);
  halves(block + 4, to, [&](int q, int) { return float(q) * scale + least; });
}

uint32_t word_at(Bytes from) {
  uint32_t bits;
  std::memcpy(&bits, from, 4);
  return bits;
}

void q5_0(Bytes block, float* to) {  // scale, the fifth bits, 32 × 4 bits
  const float scale = half_at(block);
  const uint32_t fifth = word_at(block + 2);
  halves(block + 6, to, [&](int q, int i) { return float((q | int(fifth >> i & 1) << 4) - 16) * scale; });
}

void q5_1(Bytes block, float* to) {  // scale, minimum, the fifth bits, 32 × 4 bits
  const float scale = half_at(block), least = half_at(block + 2);
  const uint32_t fifth = word_at(block + 4);
  halves(block + 8, to, [&](int q, int i) { return float(q | int(fifth >> i & 1) << 4) * scale + least; });
}

void q8_0(Bytes block, float* to) {  // scale, 32 × 8 bits
  const float scale = half_at(block);
  for (int i = 0; i < 32; i++) to[i] = float(int8_t(block[2 + i])) * scale;
}

void q2_k(Bytes block, float* to) {  // 16 × (scale, minimum: 4 bits each), 256 × 2 bits, scale of the scales, of the minima
  const Bytes packed = block + 16;
  const float scale = half_at(block + 80), least = half_at(block + 82);
  for (int i = 0; i < 256; i++) {
    const int q = packed[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3, both = block[i / 16];
    to[i] = (scale * float(both & 15)) * float(q) - least * float(both >> 4);
  }
}

void q3_k(Bytes block, float* to) {  // the third bits, 256 × 2 bits, 16 scales of 6 bits, their scale
  const Bytes packed = block + 32, scales = block + 96;
  const float scale = half_at(block + 108);
  for (int i = 0; i < 256; i++) {
    const int s = i / 16, low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4, high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
    const int q = (packed[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - (block[i % 32] >> (i / 32) & 1 ? 0 : 4);
    to[i] = (scale * float((low | high << 4) - 32)) * float(q);
  }
}

struct ScaleAndMinimum {
  int scale, minimum;
};

// Eight scales and eight minima of 6 bits in 12 bytes; the last four have their upper two bits with the first four.
ScaleAndMinimum six_bits(Bytes packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | (packed[i - 4] >> 2 & 48), packed[i + 4] >> 4 | (packed[i] >> 2 & 48)};
}

void q4_k(Bytes block, float* to) {  // scale of the scales, of the minima, 8 × (scale, minimum: 6 bits each), 256 × 4 bits
  const float scale = half_at(block), least = half_at(block + 2);
  for (int s = 0; s < 8; s++) {
    const auto [own, minimum] = six_bits(block + 4, s);
    const float factor = scale * float(own), offset = least * float(minimum);
    const Bytes packed = block + 16 + s / 2 * 32;
    for (int i = 0; i < 32; i++) to[32 * s + i] = factor * float(packed[i] >> (s % 2 * 4) & 15) - offset;
  }
}

void q5_k(Bytes block, float* to) {  // as q4_k, with the fifth bits before the others
  const float scale = half_at(block), least = half_at(block + 2);
  for (int s = 0; s < 8; s++) {
    const auto [own, minimum] = six_bits(block + 4, s);
    const float factor = scale * float(own), offset = least * float(minimum);
    const Bytes fifth = block + 16, packed = block + 48 + s / 2 * 32;
    for (int i = 0; i < 32; i++)
      to[32 * s + i] = factor * float((packed[i] >> (s % 2 * 4) & 15) | (fifth[i] >> s & 1) << 4) - offset;
  }
}

void q6_k(Bytes block, float* to) {  // 256 × 4 bits, 256 × 2 bits, 16 scales of 8 bits, their scale
  const Bytes high = block + 128, scales = block + 192;
  const float scale = half_at(block + 208);
  for (int i = 0; i < 256; i++) {
    const int part = i / 128, low = block[part * 64 + i % 64] >> (i / 64 % 2 * 4) & 15;
    const int q = (low | (high[part * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) << 4) - 32;
    to[i] = (scale * float(int8_t(scales[i / 16]))) * float(q);
  }
}

void iq4_nl(Bytes block, float* to) {  // scale, 32 × 4 bits
  const float scale = half_at(block);
  halves(block + 2, to, [&](int q, int) { return scale * nonlinear[q]; });
}

void iq4_xs(Bytes block, float* to) {  // scale of the scales, 8 scales: upper 2 bits, lower 4 bits, 256 × 4 bits
  const float scale = half_at(block);
  const int high = block[2] | block[3] << 8;
  for (int s = 0; s < 8; s++) {
    const int own = (block[4 + s / 2] >> (s % 2 * 4) & 15) | (high >> (2 * s) & 3) << 4;
    const float factor = scale * float(own - 32);
    halves(block + 8 + 16 * s, to + 32 * s, [&](int q, int) { return factor * nonlinear[q]; });
  }
}

template <auto decode>
void each_block(const std::byte* from, BlockShape shape, int64_t count, float* to) {
  for (int64_t i = 0; i < count / shape.elements; i++)
    decode(reinterpret_cast<Bytes>(from) + i * shape.bytes, to + i * shape.elements);
}

}  // namespace

void dequantize(const std::byte* from, Stored type, int64_t count, float* to) {
  const BlockShape shape = block_of(type);
  switch (type) {
    case Stored::q4_0: return each_block<q4_0>(from, shape, count, to);
    case Stored::q4_1: return each_block<q4_1>(from, shape, count, to);
    case Stored::q5_0: return each_block<q5_0>(from, shape, count, to);
    case Stored::q5_1: return each_block<q5_1>(from, shape, count, to);
    case Stored::q8_0: return each_block<q8_0>(from, shape, count, to);
    case Stored::q2_k: return each_block<q2_k>(from, shape, count, to);
    case Stored::q3_k: return each_block<q3_k>(from, shape, count, to);
    case Stored::q4_k: return each_block<q4_k>(from, shape, count, to);
    case Stored::q5_k: return each_block<q5_k>(from, shape, count, to);
    case Stored::q6_k: return each_block<q6_k>(from, shape, count, to);
    case Stored::iq4_nl: return each_block<iq4_nl>(from, shape, count, to);
    case Stored::iq4_xs: return each_block<iq4_xs>(from, shape, count, to);
    default: return to_floats(from, type, count, to);
  }
}

}  // namespace gigpo
