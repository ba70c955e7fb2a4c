// Common parts of the matrix products in fp32 and bf16: tile sizes, and the output of sums. Include only from kernel
// files.
#pragma once
#include "core/cpu/vector_bf16.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

// A tile of rows × 2 vectors of sums stays in registers, next to two vectors of b and one of a: 32 registers in AVX-512, 32 in NEON (which
// keeps three vectors of a), 16 otherwise.
#if defined(GIGPO_NEON)
constexpr int max_rows = 12;
#else
constexpr int max_rows = lanes == 16 ? 14 : lanes == 8 ? 6 : 4;
#endif
constexpr int row_width = (max_rows + lanes - 1) / lanes * lanes;  // of packed rows

// c = sums (+ c) (+ bias), rounded once; the last vector has only `last` columns.
template <int rows, int vectors, class C, class B>
GIGPO_INLINE void write(const Vec (&sums)[rows][vectors], int64_t last, C* c, int64_t ldc, bool accumulate, const B* bias) {
#pragma GCC unroll 2
  for (int v = 0; v < vectors; v++, c += lanes) {
    const int64_t count = v == vectors - 1 ? last : lanes;
    const Vec offset = bias ? load_some(bias + v * lanes, count) : Vec{};
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      C* out = c + i * ldc;
      store_some(out, (accumulate ? load_some(out, count) + sums[i][v] : sums[i][v]) + offset, count);
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
