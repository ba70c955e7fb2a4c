// Wrappers of wgmma (PTX ISA, sm_90a): asynchronous products of tiles in shared memory by a warpgroup (four warps), with results in registers.
// Each function must be executed by all warps of the group with all lanes active.
#pragma once
#include "cuda/ptx_sm90.cuh"

namespace gigpo::cuda {

// Start and layout of an operand, in 16-byte chunks in lines of 128 bytes as written by copy_tile (128B swizzle). If k
// runs along the lines ("K-major"), line r is row or column r, `stride` bytes separate groups of eight lines, and
// `leading` is ignored. If k runs across ("MN-major"), a line is one k of 64 rows or columns, `stride` bytes separate
// groups of eight k, and `leading` bytes separate one 64 rows or columns from the next.
__device__ inline uint64_t matrix_descriptor(const void* start, unsigned leading, unsigned stride) {
  return uint64_t((shared_address(start) & 0x3FFFF) >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 |
         uint64_t{1} << 62;
}

#ifdef GIGPO_CUDA_EMULATOR

using emulator::wgmma_commit;
using emulator::wgmma_fence;
using emulator::wgmma_wait;

template <int columns, bool m_major, bool n_major>
void wgmma(float (&d)[columns / 2], uint64_t a, uint64_t b, bool accumulate, emulator::Place place = emulator::Place::current()) {
  emulator::multiply_async(d, {a, b, columns, m_major, n_major, accumulate}, place);
}

#else

// Orders register accesses before the following products. Required before the first product, and whenever the sums were accessed.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Commits all previous products as a group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until all but the `groups` most recent groups are complete. The operands of complete groups may be overwritten.
template <int groups>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}
// Waits for all groups; the sums may be read afterwards, and not reordered before by the compiler.
template <int groups, int count>
__device__ void wgmma_wait(float (&d)[count]) {
  static_assert(groups == 0);
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define GIGPO_8(what, i) what(i), what(i + 1), what(i + 2), what(i + 3), what(i + 4), what(i + 5), what(i + 6), what(i + 7)
#define GIGPO_32(what, i) GIGPO_8(what, i), GIGPO_8(what, i + 8), GIGPO_8(what, i + 16), GIGPO_8(what, i + 24)
#define GIGPO_SUM(i) "+f"(d[i])
#define GIGPO_NAMES_64                                                                                                       \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
  "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GIGPO_NAMES_96                                                                                                       \
  GIGPO_NAMES_64                                                                                                             \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "    \
  "%87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GIGPO_NAMES_128                                                                                                     \
  GIGPO_NAMES_96                                                                                                            \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, " \
  "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GIGPO_WGMMA(n, names, a_at, b_at, accumulate_at, m_major_at, n_major_at, ...)                                      \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " accumulate_at ", 0;\n"                                 \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 {" names "}, " a_at ", " b_at                       \
               ", accumulate, 1, 1, " m_major_at ", " n_major_at ";\n}"                                                     \
               : __VA_ARGS__                                                                                                \
               : "l"(a), "l"(b), "r"(int(accumulate)), "n"(int(m_major)), "n"(int(n_major)))

// D = A · B, or D += A · B, with A [64][16] and B [16][columns], in bf16 with sums in fp32. Warp w of the group has the
// rows from 16 w on: with g = lane / 4, t = lane % 4, d[4 j], d[4 j + 1] = D[16 w + g][8 j + 2 t, + 1], and d[4 j + 2],
// d[4 j + 3] the same columns of row 16 w + g + 8.
template <int columns, bool m_major, bool n_major>
__device__ __forceinline__ void wgmma(float (&d)[columns / 2], uint64_t a, uint64_t b, bool accumulate) {
  static_assert(columns == 128 || columns == 192 || columns == 256);
  if constexpr (columns == 128) {
    GIGPO_WGMMA("128", GIGPO_NAMES_64, "%64", "%65", "%66", "%67", "%68", GIGPO_32(GIGPO_SUM, 0), GIGPO_32(GIGPO_SUM, 32));
  } else if constexpr (columns == 192) {
    GIGPO_WGMMA("192", GIGPO_NAMES_96, "%96", "%97", "%98", "%99", "%100", GIGPO_32(GIGPO_SUM, 0), GIGPO_32(GIGPO_SUM, 32),
                GIGPO_32(GIGPO_SUM, 64));
  } else {
    GIGPO_WGMMA("256", GIGPO_NAMES_128, "%128", "%129", "%130", "%131", "%132", GIGPO_32(GIGPO_SUM, 0),
                GIGPO_32(GIGPO_SUM, 32), GIGPO_32(GIGPO_SUM, 64), GIGPO_32(GIGPO_SUM, 96));
  }
}

#undef GIGPO_8
#undef GIGPO_32
#undef GIGPO_SUM
#undef GIGPO_NAMES_64
#undef GIGPO_NAMES_96
#undef GIGPO_NAMES_128
#undef GIGPO_WGMMA

#endif

}  // namespace gigpo::cuda
