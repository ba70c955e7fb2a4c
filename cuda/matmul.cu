// C = op(A) · op(B) + bias + added for bf16, on the tensor cores (mma.sync, sm_80 and newer).
//
// A block makes a tile of C. It streams the tiles of A and B that this takes through shared memory, `depth` of k at a time,
// several stages ahead (cp.async), and each warp multiplies its part with ldmatrix and mma. In shared memory the 16-byte chunks
// of a line are permuted by the line's number, so that eight lines' chunks lie in eight different bank groups, for both
// directions of ldmatrix: the transposes cost nothing.
//
// What an element of C is: k is cut into ranges (range_of: by n and k alone); over each range, one chain of mma steps of 16 from
// zero, in order; the ranges' sums added in order. Every tile shape here computes just that, so the choice of a shape, which
// depends on m, changes no bit. A product of few rows and columns runs its ranges in blocks of their own, which fills the card;
// one of many rows takes them one after the other.
#include <algorithm>

#include "cuda/launch.h"
#include "cuda/matmul.h"
#include "cuda/matmul_output.cuh"
#include "cuda/ptx.cuh"

namespace gigpo::cuda {

namespace {

using bf16 = __nv_bfloat16;

constexpr int64_t range_step = 64;  // ranges are multiples of it; all tiles pad k to it, with zeros

__host__ __device__ constexpr int64_t steps_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

template <int rows_, int columns_, int depth_, int stages_, int warp_rows_, int warp_columns_>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, depth = depth_, stages = stages_;
  static constexpr int warp_rows = warp_rows_, warp_columns = warp_columns_;
  static constexpr int warps_across = columns / warp_columns, threads = rows / warp_rows * warps_across * 32;
  static constexpr int stage_elements = (rows + columns) * depth;
  static constexpr int output_stride = warp_columns + 8;  // floats; 8 modulo 32 or 24, so that a warp's writes meet no conflict
  static constexpr int shared_bytes = stages * stage_elements * 2;
  static_assert(shared_bytes >= threads / 32 * 16 * output_stride * 4, "the output passes through the stages' memory");
  static_assert(shared_bytes <= 99 << 10, "what a block may have on the smallest of the cards (sm_86, sm_89, sm_120)");
};

// The last four are for few rows: their time is that of reading B once, so what counts is how much is in flight. With 64 columns
// and 64 of k a stage has 8 KiB of B; four to six stages, and two or three blocks on a multiprocessor, keep 60 KiB or more on
// the way, where memory of 3.35 TB/s and 700 ns asks for 18 KiB from each of 132. A's rows come from L2, and the narrower the
// tile the more often: at 128 rows, twice what B takes.
// The first two are for many: `wide` moves 85 flops per byte from L2, needs all registers of a multiprocessor, and reads 4 KiB
// of shared memory for 64 × 64 × 16 products, half of what its bandwidth allows at the full mma.sync rate. `square` leaves half
// the registers: to a second block, or to the sums of earlier ranges.
using Wide = Tile<128, 256, 32, 4, 64, 64>;
using Square = Tile<128, 128, 32, 4, 64, 32>;
using Rows128 = Tile<128, 64, 64, 4, 32, 32>;
using Rows64 = Tile<64, 64, 64, 5, 32, 32>;
using Rows32 = Tile<32, 64, 64, 6, 32, 16>;
using Rows16 = Tile<16, 64, 64, 6, 16, 16>;
// For strides and pointers that cp.async cannot take, and for op(A) and op(B) both transposed.
using Any = Tile<64, 64, 64, 2, 32, 32>;

struct Product {
  int64_t m, n, k;
  const bf16* a;
  const bf16* b;
  int64_t a_stride, b_stride;
  bool transpose_a, transpose_b;
  int64_t range;
  bool parallel;  // one range a block, whose sum goes to out.c[range][m][c_stride]
  MatmulOutput out;
};

// One operand's tile of a stage: `width` rows or columns of C by `depth` of k. Kept as it lies in memory: [width][depth] where k
// runs along the rows there, else [depth][width].
template <int width, int depth, bool along_k, int threads>
struct Operand {
  static constexpr int lines = along_k ? width : depth, chunks = (along_k ? depth : width) / 8;
  static constexpr int lines_at_once = threads / chunks;
  static_assert(chunks >= 4 && threads % chunks == 0 && lines % lines_at_once == 0, "every thread copies as many chunks");

  __device__ static int place(int line, int chunk) {
    const int turn = chunks >= 8 ? line % 8 : line / (8 / chunks) % chunks;
    return (line * chunks + (chunk ^ turn)) * 8;
  }

  // From `first` of the width on, of which there are `limit`, and from k = `begin` on, up to `end`; zeros beyond.
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
      // Neighbouring threads take what is neighbouring in memory.
      const int w = k_stride == 1 ? i / depth : i % width, k = k_stride == 1 ? i % depth : i / width;
      const bool valid = first + w < limit && begin + k < end;
      const int64_t offset = (first + w) * width_stride + (begin + k) * k_stride;
      to[place(w, k / 8) + k % 8] = valid ? from[offset] : __float2bfloat16_rn(0.0f);
    }
  }

  // Four matrices of 8 × 8: 16 of the width from w, 16 of k from k. In the order that mma wants of A, or of two Bs.
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

// What a warp has of op(A) and op(B) for one step of 16.
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

// One stage's products. The next step's fragments load while this one's are multiplied.
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

// A warp's sums, 16 rows at a time, through its own part of shared memory, so that it writes along whole rows.
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
      for (int e = 0; e < 4; e++) {
        // Added to zero, as ranges' sums are: it makes -0 into 0.
        staged[(lane / 4 + e / 2 * 8) * T::output_stride + 8 * j + 2 * (lane % 4) + e % 2] = 0.0f + sums[i][j][e];
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

// Blocks that run at the same time should share rows and columns, which then come from L2: bands of eight tiles of rows, along
// their columns.
template <class T>
__device__ void tile_of_block(const Product& p, int64_t* row, int64_t* column) {
  constexpr int64_t band = 8;
  const int64_t down = steps_of(p.m, T::rows), across = steps_of(p.n, T::columns);
  const int64_t first = blockIdx.x / (band * across) * band, in_band = blockIdx.x % (band * across);
  const int64_t height = down - first < band ? down - first : band;
  *row = (first + in_band % height) * T::rows;
  *column = in_band / height * T::columns;
}

template <class T, bool transpose_a, bool transpose_b, bool several_ranges, bool any>
__global__ __launch_bounds__(T::threads, (T::rows == 128 && T::columns == 128 && !several_ranges ? 2 : 1)) void matmul_kernel(
    Product p) {
  using Both = Operands<T, transpose_a, transpose_b>;
  bf16* const shared = dynamic_shared<bf16>();
  int64_t row, column;
  tile_of_block<T>(p, &row, &column);
  const int64_t begin = p.parallel ? blockIdx.y * p.range : 0;
  const int64_t end = p.parallel && begin + p.range < p.k ? begin + p.range : p.k;
  const int64_t stages = steps_of(end - begin, range_step) * (range_step / T::depth);
  [[maybe_unused]] const int64_t stages_of_range = p.range / T::depth;

  const auto fetch = [&](int64_t stage) {
    if (stage < stages) {
      bf16* const to = shared + stage % T::stages * T::stage_elements;
      const int64_t k = begin + stage * T::depth;
      if constexpr (any) {
        Both::A::copy_any(to, p.a, p.transpose_a ? 1 : p.a_stride, p.transpose_a ? p.a_stride : 1, row, p.m, k, end);
        Both::B::copy_any(to + T::rows * T::depth, p.b, p.transpose_b ? p.b_stride : 1, p.transpose_b ? 1 : p.b_stride, column,
                          p.n, k, end);
      } else {
        Both::A::copy(to, p.a, p.a_stride, row, p.m, k, end);
        Both::B::copy(to + T::rows * T::depth, p.b, p.b_stride, column, p.n, k, end);
      }
    }
    copy_async_commit();  // also when there is nothing more: the groups count the stages
  };

  const int warp = int(threadIdx.x) / 32;
  const int warp_row = warp / T::warps_across * T::warp_rows, warp_column = warp % T::warps_across * T::warp_columns;
  Sums<T> total = {};
  const auto multiply_up_to = [&](Sums<T>& sums, int64_t first, int64_t last) {
    for (int64_t stage = first; stage < last; stage++) {
      copy_async_wait<T::stages - 2>();
      __syncthreads();  // all have this stage, and have read the last, whose memory the next fetch takes
      fetch(stage + T::stages - 1);
      multiply_stage<T, Both>(sums, shared + stage % T::stages * T::stage_elements, warp_row, warp_column);
    }
  };
#pragma unroll
  for (int stage = 0; stage < T::stages - 1; stage++) fetch(stage);
  if constexpr (several_ranges) {
    for (int64_t first = 0; first < stages; first += stages_of_range) {
      Sums<T> sums = {};
      multiply_up_to(sums, first, first + stages_of_range < stages ? first + stages_of_range : stages);
      add_sums<T>(total, sums);
    }
  } else {
    multiply_up_to(total, 0, stages);
  }
  copy_async_wait<0>();
  __syncthreads();
  MatmulOutput out = p.out;
  if (p.parallel) out.c = static_cast<float*>(out.c) + blockIdx.y * p.m * out.c_stride;
  write_sums<T>(out, total, reinterpret_cast<float*>(shared) + warp * 16 * T::output_stride, row + warp_row,
                column + warp_column);
}

constexpr int sum_threads = 256;

// The ranges' sums added in order, four columns a thread.
__global__ __launch_bounds__(sum_threads) void add_ranges_kernel(int ranges, const float* sums, int64_t stride,
                                                                 MatmulOutput out) {
  const int64_t i = int64_t(blockIdx.x) * sum_threads + threadIdx.x, fours = stride / 4;
  const int64_t row = i / fours, column = i % fours * 4;
  if (row >= out.m) return;
  float values[4] = {};
  for (int range = 0; range < ranges; range++) {
    const auto four = *reinterpret_cast<const Four<float>*>(sums + (range * out.m + row) * stride + column);
#pragma unroll
    for (int e = 0; e < 4; e++) values[e] += four.values[e];
  }
  write_four(out, row, column, values);
}

template <class T>
int64_t tiles_of(const Product& p) {
  return steps_of(p.m, T::rows) * steps_of(p.n, T::columns);
}

template <class T, bool transpose_a, bool transpose_b, bool several_ranges, bool any = false>
void launch_tile(const Product& p, cudaStream_t stream) {
  const dim3 grid(unsigned(tiles_of<T>(p)), p.parallel ? unsigned(steps_of(p.k, p.range)) : 1);
  launch(matmul_kernel<T, transpose_a, transpose_b, several_ranges, any>, grid, dim3(T::threads), T::shared_bytes, stream, p);
}

void launch_product(const Product& p, MatmulTile tile, cudaStream_t stream) {
  switch (tile) {
    case MatmulTile::rows_16: return launch_tile<Rows16, false, true, false>(p, stream);
    case MatmulTile::rows_32: return launch_tile<Rows32, false, true, false>(p, stream);
    case MatmulTile::rows_64: return launch_tile<Rows64, false, true, false>(p, stream);
    case MatmulTile::rows_128: return launch_tile<Rows128, false, true, false>(p, stream);
    case MatmulTile::wide:
      if (p.transpose_a) return launch_tile<Wide, true, false, false>(p, stream);
      if (p.transpose_b) return launch_tile<Wide, false, true, false>(p, stream);
      return launch_tile<Wide, false, false, false>(p, stream);
    case MatmulTile::square:
      if (p.transpose_a) return launch_tile<Square, true, false, false>(p, stream);
      if (p.transpose_b) return launch_tile<Square, false, true, true>(p, stream);
      return launch_tile<Square, false, false, false>(p, stream);
    default: return launch_tile<Any, false, true, true, true>(p, stream);
  }
}

// Multiprocessors of an H100 or H200. A constant, since on other cards, too, the same product should have the same bits.
constexpr int64_t multiprocessors = 132;

// How k is cut. A projection to few columns (H of a small model) has too few tiles of 64 to fill a card with few rows: up to
// eight ranges of at least 384, and about one block and a half for each multiprocessor. More would read and write more sums
// (8 bytes an element and range, in L2) than they speed up.
int64_t range_of(const Product& p) {
  const int64_t whole = std::max<int64_t>(1, steps_of(p.k, range_step)) * range_step;
  if (p.transpose_a || !p.transpose_b) return whole;
  const int64_t columns = std::max<int64_t>(1, steps_of(p.n, 64));
  const int64_t ranges = std::clamp<int64_t>(std::min(multiprocessors * 3 / 2 / columns, p.k / 384), 1, 8);
  return steps_of(steps_of(p.k, ranges), range_step) * range_step + (p.k == 0 ? range_step : 0);
}

// The gradient of a small weight: few tiles over many tokens. No row of it is any token's, so the ranges may depend on m.
int64_t range_of_gradient(const Product& p, size_t workspace_bytes) {
  const int64_t tiles = tiles_of<Square>(p), bytes = p.m * (p.n + 3) * int64_t(sizeof(float));
  if (tiles >= multiprocessors) return p.range;
  const int64_t ranges = std::min({2 * multiprocessors / tiles, p.k / 1024, int64_t(workspace_bytes) / bytes});
  return ranges < 2 ? p.range : steps_of(steps_of(p.k, ranges), range_step) * range_step;
}

bool copies_in_sixteens(const Tensor& t) {
  return multiple_of(t.data, 16) && t.stride % 8 == 0 && t.columns % 8 == 0;
}

MatmulTile choose(const Matmul& product, const Product& p, MatmulTile wanted) {
  const bool rows_times_rows = !p.transpose_a && p.transpose_b;
  if (!copies_in_sixteens(product.a) || !copies_in_sixteens(product.b) || (p.transpose_a && p.transpose_b)) return MatmulTile::any;
  if (wanted == MatmulTile::wide || wanted == MatmulTile::square || wanted == MatmulTile::any) return wanted;
  if (wanted != MatmulTile::chosen) return rows_times_rows ? wanted : MatmulTile::any;
  // Beyond 32,768 columns (a vocabulary) there are tiles enough for broad ones, which read A less often.
  if (rows_times_rows && (p.m <= 64 || (p.m <= 128 && p.n < 32768))) {
    if (p.m <= 32) return p.m <= 16 ? MatmulTile::rows_16 : MatmulTile::rows_32;
    return p.m <= 64 ? MatmulTile::rows_64 : MatmulTile::rows_128;
  }
  return p.range >= p.k && tiles_of<Wide>(p) >= multiprocessors ? MatmulTile::wide : MatmulTile::square;
}

int64_t blocks_of(const Product& p, MatmulTile tile) {
  switch (tile) {
    case MatmulTile::rows_16: return tiles_of<Rows16>(p);
    case MatmulTile::rows_32: return tiles_of<Rows32>(p);
    case MatmulTile::rows_64: return tiles_of<Rows64>(p);
    case MatmulTile::rows_128: return tiles_of<Rows128>(p);
    case MatmulTile::wide: return tiles_of<Wide>(p);
    case MatmulTile::square: return tiles_of<Square>(p);
    default: return tiles_of<Any>(p);
  }
}

// Only these can take range after range.
bool takes_ranges(const Product& p, MatmulTile tile) {
  return tile == MatmulTile::any || (tile == MatmulTile::square && p.transpose_b);
}

}  // namespace

void matmul(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream, MatmulTile tile) {
  if (product.m() == 0 || product.n() == 0) return;
  if (product.a.type == Type::f32) return matmul_f32(product, stream);
  Product p = {product.m(),
               product.n(),
               product.k(),
               static_cast<const bf16*>(product.a.data),
               static_cast<const bf16*>(product.b.data),
               product.a.stride,
               product.b.stride,
               product.transpose_a,
               product.transpose_b,
               0,
               false,
               output_of(product)};
  p.range = range_of(p);
  tile = choose(product, p, tile);

  const size_t unaligned = (16 - reinterpret_cast<uintptr_t>(workspace) % 16) % 16;
  char* const room = static_cast<char*>(workspace) + unaligned;
  const size_t room_bytes = workspace && workspace_bytes > unaligned ? workspace_bytes - unaligned : 0;
  if (p.transpose_a && tile == MatmulTile::square) p.range = range_of_gradient(p, room_bytes);

  const int64_t ranges = steps_of(p.k, p.range), stride = steps_of(p.n, 4) * 4;
  const bool fits = uint64_t(ranges * p.m * stride) * sizeof(float) <= room_bytes;
  if (ranges > 1 && fits && (!takes_ranges(p, tile) || blocks_of(p, tile) < multiprocessors)) {
    p.parallel = true;
    p.out = {p.m, stride, room, stride, nullptr, nullptr, 0, false, false, true};
    launch_product(p, tile, stream);
    const unsigned blocks = unsigned(steps_of(p.m * (stride / 4), sum_threads));
    launch(add_ranges_kernel, dim3(blocks), dim3(sum_threads), 0, stream, int(ranges), reinterpret_cast<const float*>(room),
           stride, output_of(product));
    return;
  }
  launch_product(p, ranges > 1 && !takes_ranges(p, tile) ? MatmulTile::square : tile, stream);
}

}  // namespace gigpo::cuda
