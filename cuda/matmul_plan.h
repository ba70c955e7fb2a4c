// Choice between the broad tiles of cuda/matmul.cu, by the time of the multiprocessor with the most tiles. It is a prediction that has not been
// measured on a GPU. It changes no bits.
#pragma once
#include "cuda/matmul_tile.cuh"

namespace gigpo::cuda {

// Tiles on the multiprocessor that has the most.
constexpr int64_t most_tiles(int64_t tiles) { return steps_of(tiles, multiprocessors); }

// Whether tiles of 128 × 256 (`wide` of them) take less time than tiles of 128 × 128 (`square`).
//
// A multiprocessor runs one wide tile, or two square ones, at a time. With 140 wide tiles, 8 of 132 multiprocessors compute a second one while
// the others wait; the 280 square ones are 3 at most, of half the size. A square tile takes half the time of a wide one where the tensor cores
// are the limit, and two thirds where L2 is, from which it moves 64 flops per byte instead of 85: 3/5 lies between. With fewer wide tiles than
// multiprocessors, square ones use more of them.
constexpr bool wide_is_faster(int64_t wide, int64_t square) {
  return wide >= multiprocessors && 5 * most_tiles(wide) <= 3 * most_tiles(square);
}

}  // namespace gigpo::cuda
