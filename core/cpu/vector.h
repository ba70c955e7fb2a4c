// Portable vector operations: `Vec`, the widest vector of floats of the instruction set, and its operations. Include only from kernel
// files, which are compiled once per instruction set with -DGIGPO_ISA_NAME=<name>. Kernel files must define no function with external
// linkage except the entries of their table, and must not use std functions or templates: the linker keeps one copy of those, which might
// use instructions that this CPU does not support.
#pragma once
#include <stdint.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define GIGPO_INLINE [[gnu::always_inline]] static inline

namespace gigpo::cpu::GIGPO_ISA_NAME {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;  // SSE2, NEON: every 64-bit CPU
#endif

typedef float Vec __attribute__((vector_size(4 * lanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * lanes)));  // also the result of a comparison: 0 or -1
typedef uint32_t UintVec __attribute__((vector_size(4 * lanes)));
typedef uint64_t WideVec __attribute__((vector_size(4 * lanes)));  // half as many lanes
typedef float UnalignedVec __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef int32_t UnalignedIntVec __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

GIGPO_INLINE Vec load(const float* p) { return *(const UnalignedVec*)p; }
GIGPO_INLINE IntVec load(const int32_t* p) { return *(const UnalignedIntVec*)p; }
GIGPO_INLINE void store(float* p, Vec v) { *(UnalignedVec*)p = v; }
GIGPO_INLINE Vec broadcast(float x) { return x - Vec{}; }  // x - 0 is x, also for -0 (0 + x is not)
GIGPO_INLINE IntVec broadcast(int32_t x) { return x + IntVec{}; }
GIGPO_INLINE IntVec bits(Vec v) { return (IntVec)v; }
GIGPO_INLINE Vec from_bits(IntVec v) { return (Vec)v; }

// Vector of lane indices: 0, 1, 2, ...
GIGPO_INLINE IntVec lane_index() {
  IntVec index;
  for (int i = 0; i < lanes; i++) index[i] = i;
  return index;
}

// Loads the first `count` floats, 0 <= count <= lanes, and fills the other lanes with zeros. Does not access memory beyond them.
GIGPO_INLINE Vec load(const float* p, int64_t count) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
#elif defined(__AVX2__)
  return _mm256_maskload_ps(p, (__m256i)(lane_index() < broadcast((int32_t)count)));
#else
  Vec v{};
  for (int i = 0; i < lanes; i++)
    if (i < count) v[i] = p[i];
  return v;
#endif
}

GIGPO_INLINE void store(float* p, Vec v, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), v);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(p, (__m256i)(lane_index() < broadcast((int32_t)count)), v);
#else
  for (int i = 0; i < lanes; i++)
    if (i < count) p[i] = v[i];
#endif
}

// Load and store that are fast if `count` is mostly `lanes`.
GIGPO_INLINE Vec load_some(const float* p, int64_t count) { return count == lanes ? load(p) : load(p, count); }
GIGPO_INLINE void store_some(float* p, Vec v, int64_t count) { count == lanes ? store(p, v) : store(p, v, count); }

// a·b + c, rounded once if the CPU supports fused multiply-add. (Compiled with -ffp-contract=off, so that no other product is fused.)
GIGPO_INLINE Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return (Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

// The product of the lower halves of each wide lane.
GIGPO_INLINE WideVec multiply_halves(WideVec a, WideVec b) {
#if defined(__AVX512F__)
  return (WideVec)_mm512_maskz_mul_epu32((__mmask8)-1, (__m512i)a, (__m512i)b);  // GCC 12 warns about the unmasked form
#elif defined(__AVX2__)
  return (WideVec)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (WideVec)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
  return (WideVec)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

// Semantics of the x86 instruction: the second operand if either is NaN.
GIGPO_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
GIGPO_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }

// Lane i of the result is lane index[i] of the concatenation of a and b.
GIGPO_INLINE Vec shuffle(Vec a, Vec b, IntVec index) {
#if defined(__clang__)
  Vec r;
  for (int i = 0; i < lanes; i++) r[i] = index[i] < lanes ? a[index[i]] : b[index[i] - lanes];
  return r;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

// Horizontal sum and maximum in a fixed order: halves folded onto each other until one lane is left.
GIGPO_INLINE float sum(Vec v) {
#pragma GCC unroll 4
  for (int half = lanes / 2; half > 0; half /= 2) v += shuffle(v, v, lane_index() ^ broadcast(half));
  return v[0];
}

GIGPO_INLINE float max(Vec v) {
#pragma GCC unroll 4
  for (int half = lanes / 2; half > 0; half /= 2) v = max(v, shuffle(v, v, lane_index() ^ broadcast(half)));
  return v[0];
}

// rows[i][j] <- rows[j][i]. Step d exchanges the off-diagonal d×d blocks of every 2d×2d block.
GIGPO_INLINE void transpose(Vec rows[lanes]) {
#pragma GCC unroll 4
  for (int d = 1; d < lanes; d *= 2) {
    const IntVec i = lane_index(), odd = (i & broadcast(d)) != 0;
    const IntVec low = odd ? i + broadcast(lanes - d) : i, high = odd ? i + broadcast(lanes) : i + broadcast(d);
#pragma GCC unroll 16
    for (int r = 0; r < lanes; r++) {
      if (r & d) continue;
      const Vec a = rows[r], b = rows[r + d];
      rows[r] = shuffle(a, b, low);
      rows[r + d] = shuffle(a, b, high);
    }
  }
}

// e^x = 2^n · e^r with n = round(x / ln 2), so |r| <= ln 2 / 2, and e^r from its Taylor series. Error below 2 ulp. 0
// for x < -87 (just above the subnormal results), +inf above 88.72, NaN for NaN.
GIGPO_INLINE Vec exp(Vec x) {
  const Vec rounder = broadcast(0x1.8p23f);  // adding it rounds to an integer, held in the low bits
  const Vec shifted = fma(x, broadcast(0x1.715476p+0f), rounder), n = shifted - rounder;
  // ln 2 in two parts; the first has few bits, so that its product with n is exact.
  const Vec r = fma(n, broadcast(-0x1.7f7d1cp-20f), fma(n, broadcast(-0x1.62e4p-1f), x));
  Vec e = broadcast(1.0f / 5040);
  e = fma(e, r, broadcast(1.0f / 720));
  e = fma(e, r, broadcast(1.0f / 120));
  e = fma(e, r, broadcast(1.0f / 24));
  e = fma(e, r, broadcast(1.0f / 6));
  e = fma(e, r, broadcast(0.5f));
  e = fma(e * r, r, r) + broadcast(1.0f);
  // 2^n as a product of two powers, because 2^128 is not a float. Unsigned, because n wraps for large |x|, whose result
  // is replaced below.
  const IntVec power = (IntVec)((UintVec)shifted - (UintVec)rounder), half = power >> 1;
  e = e * from_bits((half + broadcast(127)) << 23) * from_bits((power - half + broadcast(127)) << 23);
  e = x < broadcast(-87.0f) ? Vec{} : e;
  return x > broadcast(88.7228394f) ? broadcast(__builtin_inff()) : e;
}

GIGPO_INLINE Vec sqrt(Vec x) {
  for (int i = 0; i < lanes; i++) x[i] = __builtin_sqrtf(x[i]);  // one instruction, since these files are compiled without errno
  return x;
}

// k with x / 2^k in [√½, √2), for positive normal x.
GIGPO_INLINE IntVec log_exponent(Vec x) { return (bits(x) - broadcast(0x3f3504f3)) >> 23; }

// k·ln 2 + ln(1 + f) with 1 + f in [√½, √2). With s = f / (2 + f):
// ln(1 + f) = 2·artanh s = 2s + 2s³/3 + 2s⁵/5 + ... = f - (f²/2 - s·(f²/2 + R)), R = 2s²/3 + 2s⁴/5 + ...,
// a form whose largest term, f, is exact.
GIGPO_INLINE Vec log_of_parts(IntVec exponent, Vec f) {
  const Vec k = __builtin_convertvector(exponent, Vec);
  const Vec s = f / (f + broadcast(2.0f)), z = s * s;
  Vec r = broadcast(2.0f / 9);
  r = fma(r, z, broadcast(2.0f / 7));
  r = fma(r, z, broadcast(2.0f / 5));
  r = fma(r, z, broadcast(2.0f / 3)) * z;
  const Vec half_square = broadcast(0.5f) * f * f;
  const Vec low = fma(s, half_square + r, k * broadcast(0x1.7f7d1cp-20f));
  return fma(k, broadcast(0x1.62e4p-1f), f - (half_square - low));
}

// ln x with an error below 2 ulp, for positive normal x; undefined for other x.
GIGPO_INLINE Vec log(Vec x) {
  const IntVec k = log_exponent(x);
  return log_of_parts(k, from_bits(bits(x) - (k << 23)) - broadcast(1.0f));
}

// ln(1 - v) for v in [2^-100, 1 - 2^-24]. Error below 2 ulp: 1 + f = (1 - v) / 2^k, and f has no more digits than v, so
// it is exact.
GIGPO_INLINE Vec log_one_minus(Vec v) {
  const IntVec k = log_exponent(broadcast(1.0f) - v);
  const Vec scale = from_bits((broadcast(127) - k) << 23);
  return log_of_parts(k, (scale - broadcast(1.0f)) - v * scale);
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
