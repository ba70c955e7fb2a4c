// Work of a block of cuda/matmul.cu on its tile: loading stages of A and B, multiplying them, writing the sums. In
// shared memory the 16-byte chunks of a line are permuted by the line's number (swizzled), so that the chunks of eight
// lines are in eight different groups of banks in both directions of ldmatrix: transposes cost nothing.
#pragma once
#include "cuda/matmul_output.cuh"
#include "cuda/ptx.cuh"

namespace gigpo::cuda {

using bf16 = __nv_bfloat16;

constexpr int64_t range_step = 64;  // ranges are multiples of it; all tiles pad k to it with zeros

__host__ __device__ constexpr int64_t steps_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Multiprocessors of an H100 or H200. A constant, so that the order of sums is the same on other GPUs. Bits may differ all the same between
// architectures: a tensor core of Ampere adds 8 products at a time, one of Hopper 16, with other roundings (MMA-Sim).
constexpr int64_t multiprocessors = 132;

struct TilePlace {
  int64_t down, across;
};

// Position of a tile. Tiles that are computed at the same time should share rows and columns, which then come from L2:
// bands of eight tiles of rows, along their columns.
__device__ inline TilePlace place_of_tile(int64_t number, int64_t down, int64_t across) {
  constexpr int64_t band = 8;
  const int64_t first = number / (band * across) * band, in_band = number % (band * across);
  const int64_t height = down - first < band ? down - first : band;
  return {first + in_band % height, in_band / height};
}

template <int rows_, int columns_, int depth_, int stages_, int warp_rows_, int warp_columns_>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, depth = depth_, stages = stages_;
  static constexpr int warp_rows = warp_rows_, warp_columns = warp_columns_;
  static constexpr int warps_across = columns / warp_columns, threads = rows / warp_rows * warps_across * 32;
  static constexpr int stage_elements = (rows + columns) * depth;
  static constexpr int output_stride = warp_columns + 8;  // floats; 8 or 24 modulo 32 avoids bank conflicts of a warp's writes
  static constexpr int shared_bytes = stages * stage_elements * 2;
  static_assert(shared_bytes >= threads / 32 * 16 * output_stride * 4, "the output passes through the stages' memory");
  static_assert(shared_bytes <= 99 << 10, "what a block may have on the smallest of the cards (sm_86, sm_89, sm_120)");
};

// One operand's tile of a stage: `width` rows or columns of C by `depth` of k. Same layout as in memory: [width][depth]
// if k is contiguous there, else [depth][width].
template <int width, int depth, bool along_k, int threads>
struct Operand {
  static constexpr int lines = along_k ? width : depth, chunks = (along_k ? depth : width) / 8;
  static constexpr int lines_at_once = threads / chunks;
  static_assert(chunks >= 4 && threads % chunks == 0 && lines % lines_at_once == 0, "every thread copies as many chunks");

  __device__ static int place(int line, int chunk) {
    const int turn = chunks >= 8 ? line % 8 : line / (8 / chunks) % chunks;
    return (line * chunks + (chunk ^ turn)) * 8;
  }

  // Copies from element `first` of the width on (exclusive end `limit`), and from k = `begin` to `end`; zeros beyond.
  __device__ static void copy(bf16* to, const bf16* from, int64_t stride, int64_t first, int64_t limit, int64_t begin,
                              int64_t end) {
    const int line = int(threadIdx.x) / chunks, chunk = int(threadIdx.x) % chunks;
    const int64_t line_begin = along_k ? first : begin, line_end = along_k ? limit : end;
    const int64_t inner = (along_k ? begin : first) + 8 * chunk;
    const bool inner_valid = inner < (along_k ? end : limit);
    int64_t offset = (line_begin + line) * stride + inner;
#pragma unroll
    for (int i = 0; i < lines / lines_at_once; i++) {
      const bool valid = inner_valid && line_begin + line + i * lines_at_once < line_end;
      copy_async_16(to + place(line + i * lines_at_once, chunk), from + (valid ? offset : 0), valid);
      offset += lines_at_once * stride;
    }
  }

  // The same element by element, from any layout to [width][depth].
  __device__ static void copy_any(bf16* to, const bf16* from, int64_t width_stride, int64_t k_stride, int64_t first,
                                  int64_t limit, int64_t begin, int64_t end) {
    for (int i = int(threadIdx.x); i < width * depth; i += threads) {
      // Adjacent threads read adjacent memory.
      const int w = k_stride == 1 ? i / depth : i % width, k = k_stride == 1 ? i % depth : i / width;
      const bool valid = first + w < limit && begin + k < end;
      const int64_t offset = (first + w) * width_stride + (begin + k) * k_stride;
      to[place(w, k / 8) + k % 8] = valid ? from[offset] : __float2bfloat16_rn(0.0f);
    }
  }

  // Four matrices of 8 × 8: 16 of the width from w, 16 of k from k, in the order of mma's A operand, or of two B
  // operands.
  template <bool is_a>
  __device__ static void load(uint32_t (&to)[4], const bf16* tile, int w, int k) {
    const int lane = int(threadIdx.x) % 32, matrix = lane / 8, row = lane % 8;
    const int next_w = is_a ? matrix % 2 : matrix / 2, next_k = is_a ? matrix / 2 : matrix % 2;
    if constexpr (along_k) load_matrices(to, tile + place(w + 8 * next_w + row, k / 8 + next_k));
    else load_matrices_transposed(to, tile + place(k + 8 * next_k + row, w / 8 + next_w));
  }
};

template <class T, bool transpose_a, bool transpose_b>
struct Operands {
  using A = Operand<T::rows, T::depth, !transpose_a, T::threads>;
  using B = Operand<T::columns, T::depth, transpose_b, T::threads>;
};

// A warp's fragments of op(A) and op(B) for one step of 16.
template <class T>
struct Fragments {
  uint32_t a[T::warp_rows / 16][4], b[T::warp_columns / 16][4];

  template <class Operands>
  __device__ void load(const bf16* stage, int row, int column, int k) {
#pragma unroll
    for (int i = 0; i < T::warp_rows / 16; i++) Operands::A::template load<true>(a[i], stage, row + 16 * i, k);
#pragma unroll
    for (int j = 0; j < T::warp_columns / 16; j++) {
      Operands::B::template load<false>(b[j], stage + T::rows * T::depth, column + 16 * j, k);
    }
  }
};

template <class T>
using Sums = float[T::warp_rows / 16][T::warp_columns / 8][4];

template <class T>
__device__ void multiply_add_all(Sums<T>& sums, const Fragments<T>& fragments) {
#pragma unroll
  for (int i = 0; i < T::warp_rows / 16; i++) {
#pragma unroll
    for (int j = 0; j < T::warp_columns / 8; j++) {
      const uint32_t b[2] = {fragments.b[j / 2][j % 2 * 2], fragments.b[j / 2][j % 2 * 2 + 1]};
      multiply_add(sums[i][j], fragments.a[i], b);
    }
  }
}

// Products of one stage. The next step's fragments load while this one's are multiplied.
template <class T, class Operands>
__device__ void multiply_stage(Sums<T>& sums, const bf16* stage, int row, int column) {
  Fragments<T> fragments[2];
  fragments[0].template load<Operands>(stage, row, column, 0);
#pragma unroll
  for (int step = 0; step < T::depth / 16; step++) {
    if (step + 1 < T::depth / 16) fragments[(step + 1) % 2].template load<Operands>(stage, row, column, 16 * (step + 1));
    multiply_add_all<T>(sums, fragments[step % 2]);
  }
}

template <class T>
__device__ void add_sums(Sums<T>& to, const Sums<T>& from) {
#pragma unroll
  for (int i = 0; i < T::warp_rows / 16; i++) {
#pragma unroll
    for (int j = 0; j < T::warp_columns / 8; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) to[i][j][e] += from[i][j][e];
    }
  }
}

struct alignas(8) Two {
  float first, second;
};

// Writes a warp's sums, 16 rows at a time, through its own part of shared memory, so that stores run along whole rows.
template <class T>
__device__ void write_sums(const MatmulOutput& out, const Sums<T>& sums, float* staged, int64_t row, int64_t column) {
  const int lane = int(threadIdx.x) % 32;
  constexpr int fours = T::warp_columns / 4;
#pragma unroll
  for (int i = 0; i < T::warp_rows / 16; i++) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < T::warp_columns / 8; j++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        // Added to zero, as the sums of ranges are: turns -0 into 0.
        const Two two = {0.0f + sums[i][j][2 * half], 0.0f + sums[i][j][2 * half + 1]};
        *reinterpret_cast<Two*>(staged + (lane / 4 + 8 * half) * T::output_stride + 8 * j + 2 * (lane % 4)) = two;
      }
    }
    __syncwarp();
    for (int at = lane; at < 16 * fours; at += 32) {
      const auto* four = reinterpret_cast<const Four<float>*>(staged + at / fours * T::output_stride + at % fours * 4);
      float values[4] = {four->values[0], four->values[1], four->values[2], four->values[3]};
      write_four(out, row + 16 * i + at / fours, column + at % fours * 4, values);
    }
  }
}

}  // namespace gigpo::cuda
