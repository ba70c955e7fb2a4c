// Tile of a bf16 product by ARM's bfmmla, which multiplies 2 rows × 4 values of k by 4 values of k × 2 columns. Every element is one chain over
// pairs of k, whatever the size of the tile: to the sum is added the sum of a pair's two products, each rounded to odd, with subnormal numbers
// flushed to 0 (Arm Architecture Reference Manual, C7.2, BFMMLA where FPCR.EBF is 0, as it is until a program sets it; so also computes BFDOT).
// Include only from kernel files.
#pragma once
#include "core/cpu/matmul_output.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

// Two words of k, of one row or column after the other: elements (2x, 2x + 1) of `part` x of four.
GIGPO_INLINE bfloat16x8_t interleave(UintVec first, UintVec second, int part) {
  const auto a = (uint32x4_t)first, b = (uint32x4_t)second;
  return vreinterpretq_bf16_u32(part == 0 ? vzip1q_u32(a, b) : vzip2q_u32(a, b));
}

GIGPO_INLINE UintVec load_words(const uint32_t* p) { return (UintVec)load((const int32_t*)p); }

// Adds the products of two words along k, or of one (`whole` false) and zeros, which add nothing, to squares of 2 rows × 2 columns.
template <bool whole, int rows, int columns>
GIGPO_INLINE void add_words(const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, float32x4_t (&squares)[rows][columns]) {
  bfloat16x8_t bs[columns];
#pragma GCC unroll 4
  for (int j = 0; j < columns; j++) {
    const uint32_t* const words = b + j / 2 * lanes;
    bs[j] = interleave(load_words(words), whole ? load_words(words + b_step) : UintVec{}, j % 2);
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; i++) {
    const uint32_t* const words = a + i / 2 * lanes;
    const bfloat16x8_t as = interleave(load_words(words), whole ? load_words(words + a_step) : UintVec{}, i % 2);
#pragma GCC unroll 4
    for (int j = 0; j < columns; j++) squares[i][j] = vbfmmlaq_f32(squares[i][j], as, bs[j]);
    asm("" : "+r"(a), "+w"(squares[i][columns - 1]));  // the compiler would load all rows first, which then do not fit in the registers
  }
}

// sums[rows][vectors] = product of `pairs` words along k of a, packed [pairs][row_width], and of b, packed [pairs][b_step].
template <int rows, int vectors>
GIGPO_INLINE void multiply_words(int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, Vec (&sums)[rows][vectors]) {
  float32x4_t squares[(rows + 1) / 2][2 * vectors] = {};
  for (int64_t p = 0; p + 1 < pairs; p += 2, a += 2 * a_step, b += 2 * b_step) add_words<true>(a, a_step, b, b_step, squares);
  if (pairs % 2 != 0) add_words<false>(a, a_step, b, b_step, squares);
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      const float64x2_t left = vreinterpretq_f64_f32(squares[i / 2][2 * v]), right = vreinterpretq_f64_f32(squares[i / 2][2 * v + 1]);
      sums[i][v] = (Vec)(i % 2 == 0 ? vtrn1q_f64(left, right) : vtrn2q_f64(left, right));
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
