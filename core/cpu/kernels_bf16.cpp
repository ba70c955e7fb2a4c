// Conversions and inner loops of the matrix multiplication in bf16. Every element of a tile is one chain of sums over ascending pairs of k,
// whatever the size of the tile, so that results do not depend on the tiling.
#include "core/cpu/kernels_bf16.h"

#include "core/cpu/matmul_output.h"
#include "core/cpu/pack_bf16.h"
#if defined(GIGPO_AMX)
#include "core/cpu/tile_amx.h"
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include "core/cpu/tile_bfmmla.h"
#endif

namespace gigpo::cpu::GIGPO_ISA_NAME {
namespace {

void widen(int64_t count, const uint16_t* from, float* to) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(to + i, load(from + i));
  if (i < count) store(to + i, load(from + i, count - i), count - i);
}

void round(int64_t count, const float* from, uint16_t* to) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(to + i, load(from + i));
  if (i < count) store(to + i, load(from + i, count - i), count - i);
}

#if !defined(GIGPO_AMX)
#if !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
// Adds the two products of a pair of words to a sum, by one instruction or one after the other; each product is exact before the addition.
// `parts` are the operands of each step.
#if defined(__AVX512BF16__)
constexpr int steps = 1;
GIGPO_INLINE IntVec part(IntVec words, int) { return words; }
GIGPO_INLINE Vec add_products(IntVec a, IntVec b, Vec sum) { return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b); }
#else
constexpr int steps = 2;
GIGPO_INLINE Vec part(IntVec words, int step) { return from_bits(step == 0 ? words << 16 : words & broadcast(int32_t(0xFFFF0000))); }
GIGPO_INLINE Vec add_products(Vec a, Vec b, Vec sum) { return fma(a, b, sum); }
#endif

// sums[rows][vectors] = product over `pairs` packed words along k.
template <int rows, int vectors>
GIGPO_INLINE void multiply_words(int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, Vec (&sums)[rows][vectors]) {
  for (int64_t p = 0; p < pairs; p++, a += a_step, b += b_step) {
#pragma GCC unroll 2
    for (int step = 0; step < steps; step++) {
      decltype(part(IntVec{}, 0)) bs[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) bs[v] = part(load((const int32_t*)b + v * lanes), step);
#pragma GCC unroll 16
      for (int i = 0; i < rows; i++) {
        const auto ai = part(broadcast((int32_t)a[i]), step);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sums[i][v] = add_products(ai, bs[v], sums[i][v]);
      }
    }
  }
}
#endif

template <int rows, int vectors>
GIGPO_INLINE void tile_of(int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, void* c,
                          int64_t ldc, bool round, int64_t columns, bool accumulate, const uint16_t* bias) {
  Vec sums[rows][vectors] = {};
  const int64_t bytes = round ? sizeof(uint16_t) : sizeof(float);
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) __builtin_prefetch((const char*)c + (i * ldc + v * lanes) * bytes, 1);
  multiply_words(pairs, a, a_step, b, b_step, sums);
  const int64_t last = columns - (vectors - 1) * lanes;
  if (round) write(sums, last, (uint16_t*)c, ldc, accumulate, bias);
  else write(sums, last, (float*)c, ldc, accumulate, bias);
}

template <int rows>
void tile_at(int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, void* c, int64_t ldc, bool round,
             int64_t columns, bool accumulate, const uint16_t* bias) {
  if (columns > lanes) tile_of<rows, 2>(pairs, a, a_step, b, b_step, c, ldc, round, columns, accumulate, bias);
  else tile_of<rows, 1>(pairs, a, a_step, b, b_step, c, ldc, round, columns, accumulate, bias);
}

constexpr decltype(&tile_at<1>) tiles[] = {
    tile_at<1>, tile_at<2>, tile_at<3>,  tile_at<4>,
#if defined(__AVX2__) || defined(GIGPO_NEON)
    tile_at<5>, tile_at<6>,
#endif
#if defined(__AVX512F__) || defined(GIGPO_NEON)
    tile_at<7>, tile_at<8>, tile_at<9>, tile_at<10>, tile_at<11>, tile_at<12>,
#endif
#if defined(__AVX512F__)
    tile_at<13>, tile_at<14>,
#endif
};
static_assert(sizeof tiles / sizeof *tiles == max_rows);

void tile(int64_t rows, int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, void* c, int64_t ldc, bool round,
          int64_t columns, bool accumulate, const uint16_t* bias) {
  tiles[rows - 1](pairs, a, a_step, b, b_step, c, ldc, round, columns, accumulate, bias);
}

constexpr int tile_rows = max_rows, tile_width = row_width;
constexpr decltype(Bf16Kernels::pack_rows) pack_rows = nullptr;
#endif

}  // namespace

extern const Bf16Kernels bf16_kernels = {widen, round, pack, tile_rows, tile_width, tile, pack_rows};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
