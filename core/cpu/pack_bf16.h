// Packing of bf16 matrices stored [k][x] as words of two adjacent elements along k. Include only from kernel files.
#pragma once
#include "core/cpu/vector_bf16.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

// Words of the columns x of two rows; `second` null: of a row of zeros.
GIGPO_INLINE UintVec words(const uint16_t* first, const uint16_t* second, int64_t n) {
  const UintVec low = n < lanes ? load_bits(first, n) : load_bits(first);
  return low | (!second ? UintVec{} : n < lanes ? load_bits(second, n) : load_bits(second)) << 16;
}

// See Bf16Kernels::pack. Some rows are packed group by group while they are in the L1 cache, and the next are prefetched meanwhile.
static void pack(uint32_t* packed, int64_t distance, int64_t width, const uint16_t* source, int64_t ld, int64_t size, int64_t count, int64_t k) {
  constexpr int64_t rows_together = 16, line = 32;
  for (int64_t first = 0; first < k; first += rows_together, packed += rows_together / 2 * width, source += rows_together * ld) {
    const int64_t rows = k - first < rows_together ? k - first : rows_together, left = k - first - rows;
    for (int64_t p = 0; p < (left < rows_together ? left : rows_together); p++)
      for (int64_t x = 0; x < count; x += line) __builtin_prefetch(source + (rows_together + p) * ld + x);
    uint32_t* group = packed;
    for (int64_t begin = 0; begin < count; begin += size, group += distance) {
      const int64_t end = count - begin < size ? count : begin + size;
      for (int64_t x = begin; x < end; x += lanes) {
        const int64_t n = end - x < lanes ? end - x : lanes;
        const uint16_t* in = source + x;
        uint32_t* out = group + x - begin;
        for (int64_t p = 0; p < rows; p += 2, in += 2 * ld, out += width) store((float*)out, (Vec)words(in, p + 1 < rows ? in + ld : nullptr, n), n);
      }
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
