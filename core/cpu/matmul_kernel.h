// Part of the matrix product that is compiled once per instruction set; matmul.cpp drives it.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

struct MatmulKernel {
  int64_t lanes, rows, columns;  // of a vector; of the largest tile, whose columns are two vectors
  int64_t row_width;             // rows rounded up to whole vectors

  // packed[p][x] = source(x, p) for p < k, x < count <= width; elements beyond count are unspecified. The source is
  // stored [p][x], or [x][p] if `transposed`, with leading dimension ld. width is `row_width` (for A) or `columns` (for B).
  void (*pack)(float* packed, int64_t width, const float* source, int64_t ld, bool transposed, int64_t count,
               int64_t k);
  // Packs adjacent groups of columns x of a source stored [p][x], each as `pack` does, group i at packed + i * distance. The first `larger`
  // groups have size + 1 columns, the others `size`. Each row of the source is read once and in order: a row of one group is less than a
  // cache line or two, and rows that are far apart share few lines of the cache.
  void (*pack_groups)(float* packed, int64_t distance, int64_t width, const float* source, int64_t ld, int64_t groups, int64_t size,
                      int64_t larger, int64_t k);

  // tile[r - 1]: product of an r×k and a k×columns matrix, a[p][r] and b[p][columns], with row distances a_step and
  // b_step. b is read in whole vectors; only the first `columns` columns of c[r][columns] are written: c = product (+ c
  // if accumulate) (+ bias[columns] if not null).
  using Tile = void(int64_t k, const float* a, int64_t a_step, const float* b, int64_t b_step, float* c, int64_t ldc,
                    int64_t columns, bool accumulate, const float* bias);
  Tile* const* tile;
  // Tiles for `a` stored a[r][p], with row distance a_step.
  Tile* const* row_tile;
};

GIGPO_KERNEL_TABLE(MatmulKernel, matmul_kernel)

}  // namespace gigpo::cpu
