// Tile of a bf16 product by Intel's AMX: 2 × 2 hardware tiles of sums, 32 rows × 32 columns. Every element is a chain over blocks of 16 pairs of
// k from zero, whatever the size of the tile; within a block the instruction adds the products, in the order that multiply_tiles documents.
// What is beyond the last pair is 0, which adds nothing. Include only from kernel files.
#pragma once
#include "core/cpu/amx_tiles.h"
#include "core/cpu/kernels_bf16.h"
#include "core/cpu/matmul_output.h"
#include "core/cpu/pack_bf16.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

constexpr int side = 16;  // rows, columns and pairs of a hardware tile
constexpr int tile_rows = 2 * side, tile_width = tile_rows;
static_assert(lanes == side && side == Bf16Kernels::row_pairs, "a panel of B is two hardware tiles wide");

// Adds the products of 16 pairs: a[tile_rows][a_step], b[16][b_step]. Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
template <bool two_down, bool two_across>
GIGPO_INLINE void add_block(const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step) {
  load_tile<6>(b, b_step);
  load_tile<4>(a, a_step);
  multiply_tiles<0, 4, 6>();
  if (two_across) {
    load_tile<7>(b + side, b_step);
    multiply_tiles<1, 4, 7>();
  }
  if (two_down) {
    load_tile<5>(a + side * a_step, a_step);
    multiply_tiles<2, 5, 6>();
    if (two_across) multiply_tiles<3, 5, 7>();
  }
}

// sums[tile_rows][2 * side] = product of a[tile_rows][a_step] and b[pairs][b_step]. Rows of a are padded with zeros to whole blocks; b is not.
template <bool two_down, bool two_across>
static void multiply_blocks(int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, float* sums) {
  static constexpr TileConfiguration configuration{};
  configure_tiles(configuration);
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  int64_t p = 0;
  for (; p + side <= pairs; p += side) add_block<two_down, two_across>(a + p, a_step, b + p * b_step, b_step);
  if (p < pairs) {
    alignas(64) uint32_t last[side * 2 * side] = {};
    for (int64_t i = 0; i < pairs - p; i++)
      for (int v = 0; v <= int(two_across); v++) store((float*)last + i * 2 * side + v * side, load((const float*)b + (p + i) * b_step + v * side));
    add_block<two_down, two_across>(a + p, a_step, last, 2 * side);
  }
  store_tile<0>(sums, 2 * side), store_tile<1>(sums + side, 2 * side);
  store_tile<2>(sums + side * 2 * side, 2 * side), store_tile<3>(sums + side * 2 * side + side, 2 * side);
  release_tiles();
}

template <int vectors>
GIGPO_INLINE void write_row(const Vec (&sums)[1][vectors], void* c, int64_t i, int64_t ldc, bool round, int64_t columns, bool accumulate,
                            const uint16_t* bias) {
  const int64_t last = columns - (vectors - 1) * lanes;
  if (round) write(sums, last, (uint16_t*)c + i * ldc, ldc, accumulate, bias);
  else write(sums, last, (float*)c + i * ldc, ldc, accumulate, bias);
}

static void tile(int64_t rows, int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, void* c, int64_t ldc,
                 bool round, int64_t columns, bool accumulate, const uint16_t* bias) {
  constexpr decltype(&multiply_blocks<true, true>) shapes[] = {multiply_blocks<false, false>, multiply_blocks<false, true>,
                                                               multiply_blocks<true, false>, multiply_blocks<true, true>};
  alignas(64) float sums[tile_rows * 2 * side];
  shapes[2 * (rows > side) + (columns > side)](pairs, a, a_step, b, b_step, sums);
  for (int64_t i = 0; i < rows; i++) {
    const float* const row = sums + i * 2 * side;
    const Vec both[1][2] = {{load(row), load(row + side)}}, first[1][1] = {{both[0][0]}};
    if (columns > side) write_row(both, c, i, ldc, round, columns, accumulate, bias);
    else write_row(first, c, i, ldc, round, columns, accumulate, bias);
  }
}

// Packs rows of A [rows][step] as words of two adjacent elements along k, padded with zeros to whole blocks of pairs. See Bf16Kernels::pack_rows.
static void pack_rows(uint32_t* packed, int64_t step, const uint16_t* source, int64_t ld, bool k_first, int64_t count, int64_t k) {
  if (!k_first) {
    for (int64_t i = 0; i < count; i++) {
      auto* const row = (uint16_t*)(packed + i * step);
      __builtin_memcpy(row, source + i * ld, size_t(k) * sizeof *row);
      __builtin_memset(row + k, 0, size_t(2 * step - k) * sizeof *row);
    }
    return;
  }
  for (int64_t p = 0; p < step; p += side) {
    alignas(64) uint32_t words[side * tile_rows] = {};  // [pair][row]
    if (2 * p < k) pack(words, 0, tile_rows, source + 2 * p * ld, ld, tile_rows, count, k - 2 * p < 2 * side ? k - 2 * p : 2 * side);
    for (int64_t i = 0; i < count; i += side) {
      Vec block[lanes];
      for (int64_t j = 0; j < side; j++) block[j] = load((const float*)words + j * tile_rows + i);
      transpose(block);
      for (int64_t j = 0; j < side; j++) store((float*)packed + (i + j) * step + p, block[j]);
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
