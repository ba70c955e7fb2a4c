#include "core/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gigpo {
namespace {

using Out = uint8_t*;

// Converts to IEEE binary16, rounding to nearest, ties to even. Values that are too large become infinity.
uint16_t to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFF);
  if (magnitude >= 65520) return uint16_t(sign | 0x7C00);
  // Adding a power of two whose last bit has the place of the result's last bit rounds to that place.
  const float step = std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(magnitude) & 0x7F800000u, 0x38800000u) + (13u << 23));
  const float rounded = magnitude + step - step;
  if (rounded < 0x1p-14f) return uint16_t(sign | uint32_t(rounded * 0x1p24f));
  return uint16_t(sign | (std::bit_cast<uint32_t>(rounded) - (112u << 23)) >> 13);
}

void put_half(Out to, float value) {
  const uint16_t bits = to_f16(value);
  std::memcpy(to, &bits, 2);
}

float half_of(float value) { return from_f16(to_f16(value)); }

// Levels per unit of a scale; 0 if that is too large for a float, so that all values of the block are stored as zero.
float levels_in(float levels, float scale) {
  const float result = levels / scale;
  return std::isfinite(result) ? result : 0;
}

// Value with the largest magnitude; of equal magnitudes the first.
float extreme(const float* x, int n) {
  float most = 0;
  for (int i = 0; i < n; i++)
    if (std::abs(x[i]) > std::abs(most)) most = x[i];
  return most;
}

void q8_0(const float* x, Out to) {
  const float scale = std::abs(extreme(x, 32)) / 127, factor = levels_in(1, scale);
  put_half(to, scale);
  for (int i = 0; i < 32; i++) to[2 + i] = uint8_t(int8_t(std::round(x[i] * factor)));
}

// Quantizes to a signed integer of 4 or 5 bits, stored with an offset. The extreme value of the block maps to the lowest integer.
template <int bits>
int centered(float x, float factor) {
  constexpr int half = 1 << (bits - 1);
  return std::clamp(int(double(x) * double(factor) + (half + 0.5)), 0, 2 * half - 1);
}

void q4_0(const float* x, Out to) {
  const float scale = extreme(x, 32) / -8, factor = levels_in(1, scale);
  put_half(to, scale);
  for (int i = 0; i < 16; i++) to[2 + i] = uint8_t(centered<4>(x[i], factor) | centered<4>(x[i + 16], factor) << 4);
}

void q5_0(const float* x, Out to) {
  const float scale = extreme(x, 32) / -16, factor = levels_in(1, scale);
  put_half(to, scale);
  uint32_t fifth = 0;
  for (int i = 0; i < 16; i++) {
    const int low = centered<5>(x[i], factor), high = centered<5>(x[i + 16], factor);
    fifth |= uint32_t(low >> 4) << i | uint32_t(high >> 4) << (i + 16);
    to[6 + i] = uint8_t((low & 15) | (high & 15) << 4);
  }
  std::memcpy(to + 2, &fifth, 4);
}

int nearest(float value, int least, int most) { return int(std::nearbyint(std::clamp(value, float(least), float(most)))); }

// Scale of one block of integers from -32 to 31 with the smallest error Σ x² (x - scale·q)² among 19 candidates. For given integers q the
// best scale is Σ x²·x·q / Σ x²·q².
float best_scale(const float* x, int n) {
  const float most = extreme(x, n);
  if (std::abs(most) < 1e-15f) return 0;
  float scale = 0, gain = -1;
  for (int candidate = 0; candidate < 19; candidate++) {
    // The middle candidate comes first; a later one replaces it only if it is better.
    const int offset = candidate == 0 ? 0 : candidate <= 9 ? candidate - 10 : candidate - 9;
    const float factor = -(32 + 0.1f * float(offset)) / most;
    float products = 0, squares = 0;
    for (int i = 0; i < n; i++) {
      const float q = float(nearest(factor * x[i], -32, 31)), weight = x[i] * x[i];
      products += weight * x[i] * q;
      squares += weight * q * q;
    }
    if (squares <= 0 || products * products <= gain * squares) continue;
    scale = products / squares;
    gain = scale * products;
  }
  return scale;
}

void q6_k(const float* x, Out to) {
  float scales[16];
  for (int s = 0; s < 16; s++) scales[s] = best_scale(x + 16 * s, 16);
  const float most = extreme(scales, 16);
  std::fill_n(to, 210, uint8_t(0));
  if (std::abs(most) < 1e-15f) return;
  const float factor = -128 / most, unit = half_of(1 / factor);
  put_half(to + 208, 1 / factor);
  for (int i = 0; i < 256; i++) {
    const int s = i / 16, own = nearest(factor * scales[s], -128, 127);
    to[192 + s] = uint8_t(int8_t(own));
    const float step = unit * float(own);
    const int q = step == 0 ? 32 : nearest(x[i] / step, -32, 31) + 32;
    const int part = i / 128;
    to[part * 64 + i % 64] |= uint8_t((q & 15) << (i / 64 % 2 * 4));
    to[128 + part * 32 + i % 32] |= uint8_t((q >> 4) << (i / 32 % 4 * 2));
  }
}

struct Affine {
  float scale = 0, minimum = 0;  // x ≈ scale·q - minimum, q from 0 to 15
};

// Scale and minimum of 32 values with the smallest weighted squared error among 22 candidates. For given integers both follow from linear
// regression. The lower end of the range is never positive, so that zero is in the range.
Affine best_affine(const float* x) {
  constexpr int n = 32, levels = 15;
  float squares = 0, least = x[0], most = x[0];
  for (int i = 0; i < n; i++) {
    squares += x[i] * x[i];
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  least = std::min(least, 0.0f);
  // A range below 2⁻¹²³ has no finite levels.
  if (most <= least || levels_in(levels + 1, most - least) == 0) return {0, -least};
  const float mean = std::sqrt(squares / n);
  float weights[n], sum_w = 0, sum_x = 0;
  for (int i = 0; i < n; i++) {
    weights[i] = mean + std::abs(x[i]);
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  const auto level = [&](int i, float factor) { return float(nearest(factor * (x[i] - least), 0, levels)); };
  const auto error_of = [&](float factor, float scale, float minimum) {
    float error = 0;
    for (int i = 0; i < n; i++) {
      const float difference = scale * level(i, factor) + minimum - x[i];
      error += weights[i] * difference * difference;
    }
    return error;
  };
  const float range = most - least, plain = levels / range;
  Affine best{1 / plain, -least};
  float error = error_of(plain, best.scale, least);
  for (int step = 0; step <= 20; step++) {
    const float factor = (-1 + 0.1f * float(step) + levels) / range;
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (int i = 0; i < n; i++) {
      const float q = level(i, factor), weighted = weights[i] * q;
      sum_q += weighted;
      sum_qq += weighted * q;
      sum_xq += weighted * x[i];
    }
    const float determinant = sum_w * sum_qq - sum_q * sum_q;
    if (determinant <= 0) continue;
    float scale = (sum_w * sum_xq - sum_x * sum_q) / determinant, minimum = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
    if (minimum > 0) {
      minimum = 0;
      scale = sum_xq / sum_qq;
    }
    const float candidate = error_of(factor, scale, minimum);
    if (candidate >= error) continue;
    error = candidate;
    best = {scale, -minimum};
  }
  return best;
}

void q4_k(const float* x, Out to) {
  Affine parts[8];
  float most_scale = 0, most_minimum = 0;
  for (int s = 0; s < 8; s++) {
    parts[s] = best_affine(x + 32 * s);
    most_scale = std::max(most_scale, parts[s].scale);
    most_minimum = std::max(most_minimum, parts[s].minimum);
  }
  std::fill_n(to, 144, uint8_t(0));
  put_half(to, most_scale / 63);
  put_half(to + 2, most_minimum / 63);
  const float scale_unit = half_of(most_scale / 63), minimum_unit = half_of(most_minimum / 63);
  const float to_scale = levels_in(63, most_scale), to_minimum = levels_in(63, most_minimum);
  for (int s = 0; s < 8; s++) {
    const int scale = nearest(to_scale * parts[s].scale, 0, 63), minimum = nearest(to_minimum * parts[s].minimum, 0, 63);
    const Out packed = to + 4;
    if (s < 4) {
      packed[s] |= uint8_t(scale);
      packed[s + 4] |= uint8_t(minimum);
    } else {
      packed[s + 4] = uint8_t((scale & 15) | (minimum & 15) << 4);
      packed[s - 4] |= uint8_t(scale >> 4 << 6);
      packed[s] |= uint8_t(minimum >> 4 << 6);
    }
    const float factor = scale_unit * float(scale), offset = minimum_unit * float(minimum);
    if (factor == 0) continue;
    for (int i = 0; i < 32; i++) {
      const int q = nearest((x[32 * s + i] + offset) / factor, 0, 15);
      to[16 + s / 2 * 32 + i] |= uint8_t(q << (s % 2 * 4));
    }
  }
}

void f32(const float* x, Out to) { std::memcpy(to, x, 4); }

void f16(const float* x, Out to) { put_half(to, *x); }

void bf16(const float* x, Out to) {
  const uint16_t bits = to_bf16(*x);
  std::memcpy(to, &bits, 2);
}

template <auto encode>
void each_block(const float* from, BlockShape shape, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count / shape.elements; i++) encode(from + i * shape.elements, reinterpret_cast<Out>(to) + i * shape.bytes);
}

using Encode = void (*)(const float*, BlockShape, int64_t, std::byte*);

Encode encoder(Stored type) {
  switch (type) {
    case Stored::f32: return each_block<f32>;
    case Stored::f16: return each_block<f16>;
    case Stored::bf16: return each_block<bf16>;
    case Stored::q4_0: return each_block<q4_0>;
    case Stored::q5_0: return each_block<q5_0>;
    case Stored::q8_0: return each_block<q8_0>;
    case Stored::q4_k: return each_block<q4_k>;
    case Stored::q6_k: return each_block<q6_k>;
    default: return nullptr;
  }
}

}  // namespace

float largest_stored(Stored type) {
  if (type == Stored::f32) return std::numeric_limits<float>::max();
  return type == Stored::bf16 ? 0x1.FEp127f : 65504;
}

bool can_quantize(Stored type) { return encoder(type) != nullptr; }

void quantize(const float* from, Stored type, int64_t count, std::byte* to) { encoder(type)(from, block_of(type), count, to); }

}  // namespace gigpo
