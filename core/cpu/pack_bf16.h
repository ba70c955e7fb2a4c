// Packing of bf16 matrices stored [k][x] as words of two adjacent elements along k. Include only from kernel files.
#pragma once
#include "core/cpu/vector_bf16.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

// See Bf16Kernels::pack.
static void pack(uint32_t* packed, int64_t width, const uint16_t* source, int64_t ld, int64_t count, int64_t k) {
  for (int64_t p = 0; p < k; p += 2, packed += width, source += 2 * ld) {
    const uint16_t* const second = p + 1 < k ? source + ld : nullptr;
    for (int64_t x = 0; x < count; x += lanes) {
      const int64_t n = count - x;
      const UintVec low = n < lanes ? load_bits(source + x, n) : load_bits(source + x);
      const UintVec high = !second ? UintVec{} : n < lanes ? load_bits(second + x, n) : load_bits(second + x);
      store((float*)packed + x, (Vec)(low | high << 16), n < lanes ? n : lanes);
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
