// The part of the matrix multiply that is compiled once per instruction set; matmul.cpp drives it.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

struct MatmulKernel {
  int64_t lanes, rows, columns;  // of a vector; of the largest tile: columns is two vectors

  // packed[p][x] = source(x, p) for p < k, x < count <= width; what lies beyond count is anything. The source is stored
  // [p][x], or [x][p] when `transposed`, with leading dimension ld. width is `lanes` (for A) or `columns` (for B).
  void (*pack)(float* packed, int64_t width, const float* source, int64_t ld, bool transposed, int64_t count,
               int64_t k);

  // tile[r - 1]: the product of an r×k and a k×columns matrix, a[p][r] and b[p][columns], whose rows lie a_step and
  // b_step apart. b is read in whole vectors; only the first `columns` columns of c[r][columns] are written:
  // c = product (+ c when accumulate) (+ bias[columns] when not null).
  using Tile = void(int64_t k, const float* a, int64_t a_step, const float* b, int64_t b_step, float* c, int64_t ldc,
                    int64_t columns, bool accumulate, const float* bias);
  Tile* const* tile;
  // The same where a is stored a[r][p], its rows a_step apart.
  Tile* const* row_tile;
};

GIGPO_KERNEL_TABLE(MatmulKernel, matmul_kernel)

}  // namespace gigpo::cpu
