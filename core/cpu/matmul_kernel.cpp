// Inner loops of the matrix multiplication. Every element of a tile is one chain of fused multiply-adds over ascending p, whatever the size
// of the tile, so that results do not depend on the tiling.
#include "core/cpu/matmul_kernel.h"

#include "core/cpu/matmul_output.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {
namespace {

// Rows of `a` that share a pointer: x86 addressing adds a distance, or twice that, in the load itself.
constexpr int together = 3;

// Whether a column of `a` is loaded in whole vectors: NEON multiplies by a lane of a register, so a load serves four rows.
template <int rows, bool apart>
#if defined(GIGPO_NEON)
constexpr bool by_lane = !apart && rows % lanes == 0;
#else
constexpr bool by_lane = false;
#endif

template <int rows, int vectors, bool apart>
GIGPO_INLINE void tile_of(int64_t k, const float* a, int64_t a_step, const float* b, int64_t b_step, float* c,
                          int64_t ldc, int64_t columns, bool accumulate, const float* bias) {
  Vec sums[rows][vectors] = {};
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) __builtin_prefetch(c + i * ldc + v * lanes, 1);
  const float* row[(rows + together - 1) / together];
  for (int i = 0; i < rows; i += together) row[i / together] = a + i * a_step;
  for (int64_t p = 0; p < k; p++, b += b_step) {
    Vec bs[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) bs[v] = load(b + v * lanes);
    Vec whole[rows / lanes + 1];
    if (by_lane<rows, apart>)
#pragma GCC unroll 3
      for (int i = 0; i < rows; i += lanes) whole[i / lanes] = load(a + i);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      const Vec ai = by_lane<rows, apart> ? broadcast(whole[i / lanes][i % lanes])
                                          : broadcast(apart ? row[i / together][i % together * a_step] : a[i]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) sums[i][v] = fma(ai, bs[v], sums[i][v]);
    }
    a += a_step;
#pragma GCC unroll 5
    for (const float*& some : row) some++;
  }
  const int64_t last = columns - (vectors - 1) * lanes;
  if (last == lanes)
    write<rows, vectors>(sums, lanes, c, ldc, accumulate, bias);
  else
    write<rows, vectors>(sums, last, c, ldc, accumulate, bias);
}

template <int rows, bool apart>
void tile_at(int64_t k, const float* a, int64_t a_step, const float* b, int64_t b_step, float* c, int64_t ldc,
          int64_t columns, bool accumulate, const float* bias) {
  if (columns > lanes)
    tile_of<rows, 2, apart>(k, a, a_step, b, b_step, c, ldc, columns, accumulate, bias);
  else
    tile_of<rows, 1, apart>(k, a, a_step, b, b_step, c, ldc, columns, accumulate, bias);
}

// Packs a block of `lanes` values of x and of p, or of fewer than `lanes` values of p if not `whole`. Rows beyond
// `count` repeat the last. Not inlined: as a separate function it is compiled to use registers only, which takes a
// quarter of the time.
template <bool whole>
[[gnu::noinline]] void pack_transposed(float* packed, int64_t width, const float* source, int64_t ld, int64_t count,
                                       int64_t k) {
  Vec block[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; i++) {
    block[i] = whole ? load(source) : load(source, k);
    source += ld & -int64_t(i + 1 < count);
  }
  transpose(block);
#pragma GCC unroll 16
  for (int p = 0; p < lanes; p++, packed += width)
    if (whole || p < k) store(packed, block[p]);
}

// Rows that are copied group by group while they are in the L1 cache, and the next of which are prefetched meanwhile.
constexpr int64_t rows_together = 8;

void pack_groups(float* packed, int64_t distance, int64_t width, const float* source, int64_t ld, int64_t groups, int64_t size,
                 int64_t larger, int64_t k) {
  const int64_t all = groups * size + larger;
  for (int64_t first = 0; first < k; first += rows_together, packed += rows_together * width, source += rows_together * ld) {
    const int64_t rows = k - first < rows_together ? k - first : rows_together;
    const int64_t next = k - first - rows < rows_together ? k - first - rows : rows_together;
    for (int64_t p = 0; p < next; p++)
      for (int64_t x = 0; x < all; x += 16) __builtin_prefetch(source + (rows_together + p) * ld + x);
    const float* in = source;
    for (int64_t i = 0; i < groups; i++) {
      float* const out = packed + i * distance;
      const int64_t count = size + (i < larger);
      for (int64_t x = 0; x < count; x += lanes) {
        const int64_t some = count - x < lanes ? count - x : lanes;
        if (some == lanes)
          for (int64_t p = 0; p < rows; p++) store(out + p * width + x, load(in + p * ld + x));
        else
          for (int64_t p = 0; p < rows; p++) store(out + p * width + x, load(in + p * ld + x, some));
      }
      in += count;
    }
  }
}

void pack(float* packed, int64_t width, const float* source, int64_t ld, bool transposed, int64_t count, int64_t k) {
  if (!transposed) return pack_groups(packed, 0, width, source, ld, 1, count, 0, k);
  for (int64_t x = 0; x < count; x += lanes) {
    const int64_t some = count - x < lanes ? count - x : lanes;
    float* out = packed + x;
    const float* in = source + x * ld;
    int64_t p = 0;
    for (; p + lanes <= k; p += lanes) pack_transposed<true>(out + p * width, width, in + p, ld, some, lanes);
    if (p < k) pack_transposed<false>(out + p * width, width, in + p, ld, some, k - p);
  }
}

template <bool apart>
constexpr MatmulKernel::Tile* tiles[] = {
    tile_at<1, apart>,  tile_at<2, apart>,  tile_at<3, apart>,  tile_at<4, apart>,
#if defined(__AVX2__) || defined(GIGPO_NEON)
    tile_at<5, apart>,  tile_at<6, apart>,
#endif
#if defined(__AVX512F__) || defined(GIGPO_NEON)
    tile_at<7, apart>,  tile_at<8, apart>,  tile_at<9, apart>,  tile_at<10, apart>,
    tile_at<11, apart>, tile_at<12, apart>,
#endif
#if defined(__AVX512F__)
    tile_at<13, apart>, tile_at<14, apart>,
#endif
};
static_assert(sizeof tiles<true> / sizeof *tiles<true> == max_rows);

}  // namespace

extern const MatmulKernel matmul_kernel = {lanes, max_rows, 2 * lanes, row_width, pack, pack_groups, tiles<false>, tiles<true>};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
