// bf16 loads and stores for core/cpu/vector.h: converted to fp32 when loaded, rounded when stored. Include only from kernel files, like
// core/cpu/vector.h.
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

// Stores the lower halves of `words`, whose upper halves must be 0.
GIGPO_INLINE void store_bits(uint16_t* p, UintVec words) { *(UnalignedHalfVec*)p = __builtin_convertvector(words, HalfVec); }
GIGPO_INLINE void store_bits(uint16_t* p, UintVec words, int64_t count) {
  const HalfVec v = __builtin_convertvector(words, HalfVec);
#if defined(__AVX512F__)
  _mm256_mask_storeu_epi16(p, (__mmask16)((1u << count) - 1), (__m256i)v);
#else
  for (int i = 0; i < lanes; i++)
    if (i < count) p[i] = v[i];
#endif
}

GIGPO_INLINE void store_some_bits(uint16_t* p, UintVec words, int64_t count) {
  count == lanes ? store_bits(p, words) : store_bits(p, words, count);
}

// Vector form of to_bf16 (core/bf16.h): rounds to nearest, ties to even; NaN stays NaN.
GIGPO_INLINE UintVec round_to_bf16(Vec v) {
  const UintVec bits = (UintVec)v, upper = bits >> 16;
  return v == v ? (bits + 0x7FFFu + (upper & 1u)) >> 16 : upper | 0x40u;
}
GIGPO_INLINE void store(uint16_t* p, Vec v) { store_bits(p, round_to_bf16(v)); }
GIGPO_INLINE void store(uint16_t* p, Vec v, int64_t count) { store_bits(p, round_to_bf16(v), count); }

GIGPO_INLINE Vec load_some(const uint16_t* p, int64_t count) { return count == lanes ? load(p) : load(p, count); }
GIGPO_INLINE void store_some(uint16_t* p, Vec v, int64_t count) { count == lanes ? store(p, v) : store(p, v, count); }

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
