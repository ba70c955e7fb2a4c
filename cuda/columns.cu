// Sums over rows, in two stages of fixed order: each block sums the columns of one part of the rows, then the parts are
// summed sequentially. The size of a part depends only on the number of rows, not on the GPU.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int warp_size = 32;
constexpr int walkers = 8;           // rows of a part that a block reads at a time
constexpr int64_t fewest_rows = 64;  // per part
constexpr int64_t most_parts = 512;
constexpr int summers = 32;          // parts that the second stage reads at a time

int64_t rows_in_part(int64_t rows) { return std::max(fewest_rows, (rows + most_parts - 1) / most_parts); }
int64_t parts_of(int64_t rows) { return (rows + rows_in_part(rows) - 1) / rows_in_part(rows); }

// Memory traffic: the bytes of each element, once. Rows are multiplied by `factors` if present. A warp covers 32 packs
// of columns; walker w takes rows w, w + 8, ... of the part.
template <class T, int width>
__global__ void __launch_bounds__(warp_size * walkers)
part_sums_kernel(int64_t rows, int64_t columns, int64_t part_rows, const T* x, int64_t stride, const float* factors, float* parts) {
  __shared__ float sums_of[walkers][warp_size * width];
  const int lane = int(threadIdx.x) % warp_size, walker = int(threadIdx.x) / warp_size;
  const int64_t column = (int64_t{blockIdx.y} * warp_size + lane) * width, part = blockIdx.x;
  const int64_t end = part * part_rows + part_rows < rows ? part * part_rows + part_rows : rows;
  float sums[width] = {};
  if (column < columns) {
#pragma unroll 4
    for (int64_t row = part * part_rows + walker; row < end; row += walkers) {
      float values[width];
      load(x + row * stride + column, values);
      const float factor = factors ? factors[row] : 1;
#pragma unroll
      for (int c = 0; c < width; c++) sums[c] += factor * values[c];
    }
  }
#pragma unroll
  for (int c = 0; c < width; c++) sums_of[walker][c * warp_size + lane] = sums[c];
  __syncthreads();
  for (int i = int(threadIdx.x); i < warp_size * width; i += warp_size * walkers) {
    const int64_t at = (int64_t{blockIdx.y} * warp_size + i % warp_size) * width + i / warp_size;
    if (at >= columns) continue;
    float total = 0;
    for (int w = 0; w < walkers; w++) total += sums_of[w][i];
    parts[part * columns + at] = total;
  }
}

// Memory traffic: 4 bytes per element of each part, once.
__global__ void __launch_bounds__(warp_size * summers)
add_column_sums_kernel(int64_t count, int64_t columns, const float* parts, float* to) {
  __shared__ float sums_of[summers][warp_size];
  const int lane = int(threadIdx.x) % warp_size, summer = int(threadIdx.x) / warp_size;
  const int64_t column = int64_t{blockIdx.x} * warp_size + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (int64_t part = summer; part < count; part += summers) sum += parts[part * columns + column];
  }
  sums_of[summer][lane] = sum;
  __syncthreads();
  if (summer != 0 || column >= columns) return;
  float total = 0;
  for (int s = 0; s < summers; s++) total += sums_of[s][lane];
  to[column] += total;
}

}  // namespace

void add_column_sums(const float* parts, int64_t count, int64_t columns, float* to, cudaStream_t stream) {
  if (count == 0 || columns == 0) return;
  launch(add_column_sums_kernel, dim3(unsigned((columns + warp_size - 1) / warp_size)), dim3(warp_size * summers), 0, stream,
         count, columns, parts, to);
}

size_t bias_backward_workspace(int64_t rows, int64_t columns) {
  return size_t(parts_of(rows) * columns) * sizeof(float);
}

void bias_backward(Tensor d_y, Tensor d_bias, void* workspace, cudaStream_t stream) {
  add_weighted_rows(d_y, nullptr, d_bias, workspace, stream);
}

void add_weighted_rows(Tensor x, const float* factors, Tensor to, void* workspace, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return;
  auto* parts = static_cast<float*>(workspace);
  const int64_t count = parts_of(x.rows);
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width<full_width<T>>(covered_by_packs(x, full_width<T>), [&](auto width) {
      const int64_t columns_in_block = warp_size * width;
      const dim3 grid(unsigned(count), unsigned((x.columns + columns_in_block - 1) / columns_in_block));
      launch(part_sums_kernel<T, width>, grid, dim3(warp_size * walkers), 0, stream, x.rows, x.columns, rows_in_part(x.rows),
             static_cast<const T*>(x.data), x.stride, factors, parts);
    });
  });
  add_column_sums(parts, count, x.columns, to.floats(), stream);
}

}  // namespace gigpo::cuda
