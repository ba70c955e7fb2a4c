// bf16 counterparts of the fp32 kernels: conversions, and products of bf16 with fp32 sums. kernels_bf16.cpp is compiled
// once per instruction set.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

struct Bf16Kernels {
  void (*widen)(int64_t count, const uint16_t* from, float* to);
  void (*round)(int64_t count, const float* from, uint16_t* to);

  // Packs a factor as words of two adjacent elements along k, the first in the lower half: packed[p][x] holds source(x,
  // 2p) and source(x, 2p + 1), or 0 if that index is k. The source is stored [k][x] with leading dimension ld. Its
  // `count` columns x are packed in groups of `size` <= width, group i at packed + i * distance; words beyond a group's
  // columns are unspecified. (A source stored [x][k] already is a matrix of such words.)
  void (*pack)(uint32_t* packed, int64_t distance, int64_t width, const uint16_t* source, int64_t ld, int64_t size, int64_t count, int64_t k);

  // The largest tile, and its rows rounded up to whole vectors: the `width` of packed A.
  int64_t rows, row_width;
  // Like MatmulKernel::Tile, of the first `rows` rows, over `pairs` packed words along k. `round`: c is bf16. The bias is bf16.
  void (*tile)(int64_t rows, int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step, void* c, int64_t ldc,
               bool round, int64_t columns, bool accumulate, const uint16_t* bias);

  // If not null, the tile reads A from words packed[x][p] instead, p < a_step: pairs rounded up to `row_pairs`, with zeros. `k_first`: the
  // source is stored [k][x]. Rows beyond `count` are unspecified.
  static constexpr int64_t row_pairs = 16;
  void (*pack_rows)(uint32_t* packed, int64_t a_step, const uint16_t* source, int64_t ld, bool k_first, int64_t count, int64_t k);
};

namespace portable { extern const Bf16Kernels bf16_kernels; }
#if defined(GIGPO_X86)
namespace avx2 { extern const Bf16Kernels bf16_kernels; }
namespace avx512 { extern const Bf16Kernels bf16_kernels; }
namespace avx512_bf16 { extern const Bf16Kernels bf16_kernels; }
#if defined(GIGPO_HAS_AMX)
namespace amx_bf16 { extern const Bf16Kernels bf16_kernels; }
#endif
static inline const Bf16Kernels& bf16_kernels(Isa isa) {
  const Bf16Kernels* const copies[] = {&portable::bf16_kernels, &avx2::bf16_kernels, &avx512::bf16_kernels, &avx512_bf16::bf16_kernels,
#if defined(GIGPO_HAS_AMX)
                                       &amx_bf16::bf16_kernels,
#endif
  };
  return *copies[int(isa)];
}
#elif defined(GIGPO_ARM)
namespace neon { extern const Bf16Kernels bf16_kernels; }
namespace neon_bf16 { extern const Bf16Kernels bf16_kernels; }
static inline const Bf16Kernels& bf16_kernels(Isa isa) {
  return isa == Isa::neon_bf16 ? neon_bf16::bf16_kernels : isa == Isa::neon ? neon::bf16_kernels : portable::bf16_kernels;
}
#else
static inline const Bf16Kernels& bf16_kernels(Isa) { return portable::bf16_kernels; }
#endif

}  // namespace gigpo::cpu
