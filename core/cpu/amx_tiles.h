// The instructions of Intel's AMX for bf16 (Intel SDM, volume 1, chapter 18): eight tiles of 16 rows × 64 bytes. As assembly, because GCC's
// functions take the number of a tile as text. Include only from kernel files; test/core/amx_emulator has the same functions without AMX.
#pragma once
#include <stdint.h>

namespace gigpo::cpu::GIGPO_ISA_NAME {

// Memory operand of LDTILECFG.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

static inline void configure_tiles(const TileConfiguration& by) { asm volatile("ldtilecfg %0" : : "m"(by)); }
static inline void release_tiles() { asm volatile("tilerelease"); }

template <int tile>
[[gnu::always_inline]] static inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}

// Loads 16 rows of 16 words, `step` words apart.
template <int tile>
[[gnu::always_inline]] static inline void load_tile(const uint32_t* from, int64_t step) {
  asm volatile("tileloadd (%1,%2), %%tmm%c0" : : "i"(tile), "r"(from), "r"(step * 4) : "memory");
}

template <int tile>
[[gnu::always_inline]] static inline void store_tile(float* to, int64_t step) {
  asm volatile("tilestored %%tmm%c0, (%1,%2)" : : "i"(tile), "r"(to), "r"(step * 4) : "memory");
}

// sum[16][16] += a[16][16 pairs] · b[16 pairs][16]. Operation of TDPBF16PS (Intel SDM, volume 2; read at felixcloutier.com/x86/tdpbf16ps): from
// zero, one chain of fused multiply-adds over the first elements of the pairs and one over the second; the two are added, then that to the
// sum. Each step is rounded to nearest, ties to even; subnormal operands and results are 0; MXCSR has no effect.
template <int sum, int a, int b>
[[gnu::always_inline]] static inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
