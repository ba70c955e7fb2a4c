// bf16 in memory beside core/cpu/vector.h: widened where it is loaded, rounded where it is stored. Include it only from
// kernel files, as that one.
#pragma once
#include "core/cpu/vector.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

typedef uint16_t HalfVec __attribute__((vector_size(2 * lanes)));
typedef uint16_t UnalignedHalfVec __attribute__((vector_size(2 * lanes), aligned(2), may_alias));

GIGPO_INLINE UintVec load_bits(const uint16_t* p) { return __builtin_convertvector(*(const UnalignedHalfVec*)p, UintVec); }
GIGPO_INLINE UintVec load_bits(const uint16_t* p, int64_t count) {
#if defined(__AVX512F__)
  return __builtin_convertvector((HalfVec)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), p), UintVec);
#else
  UintVec v{};
  for (int i = 0; i < lanes; i++)
    if (i < count) v[i] = p[i];
  return v;
#endif
}
GIGPO_INLINE Vec load(const uint16_t* p) { return (Vec)(load_bits(p) << 16); }
GIGPO_INLINE Vec load(const uint16_t* p, int64_t count) { return (Vec)(load_bits(p, count) << 16); }

// As to_bf16 (core/bf16.h): to nearest, ties to even; NaN stays NaN.
GIGPO_INLINE HalfVec round_to_bf16(Vec v) {
  const UintVec bits = (UintVec)v, upper = bits >> 16;
  const UintVec rounded = (bits + 0x7FFFu + (upper & 1u)) >> 16;
  return __builtin_convertvector(v == v ? rounded : upper | 0x40u, HalfVec);
}
GIGPO_INLINE void store(uint16_t* p, Vec v) { *(UnalignedHalfVec*)p = round_to_bf16(v); }
GIGPO_INLINE void store(uint16_t* p, Vec v, int64_t count) {
  const HalfVec rounded = round_to_bf16(v);
#if defined(__AVX512F__)
  _mm256_mask_storeu_epi16(p, (__mmask16)((1u << count) - 1), (__m256i)rounded);
#else
  for (int i = 0; i < lanes; i++)
    if (i < count) p[i] = rounded[i];
#endif
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
