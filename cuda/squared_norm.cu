// Σ x² in double: each block sums one part of fixed size, then one block sums the parts. Memory traffic: 4 bytes per
// float.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/reduce.cuh"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 512;
constexpr int64_t floats_in_part = 65536;

int64_t parts_of(int64_t count) { return (count + floats_in_part - 1) / floats_in_part; }

__global__ void __launch_bounds__(threads)
part_norms_kernel(int64_t count, const float* x, bool aligned, double* parts) {
  constexpr int width = 4, loads = int(floats_in_part / width / threads);
  const int64_t start = int64_t{blockIdx.x} * floats_in_part;
  double sum = 0;
#pragma unroll 8
  for (int k = 0; k < loads; k++) {
    // The order is that of packs, even if elements are loaded one by one.
    const int64_t i = start + (int64_t{k} * threads + threadIdx.x) * width;
    float values[width] = {};
    if (aligned && i + width <= count) {
      load(x + i, values);
    } else {
      for (int c = 0; c < width; c++)
        if (i + c < count) values[c] = x[i + c];
    }
#pragma unroll
    for (int c = 0; c < width; c++) sum += double(values[c]) * double(values[c]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(threads)
sum_norms_kernel(int64_t count, const double* parts, double* result) {
  double sum = 0;
#pragma unroll 8
  for (int64_t i = threadIdx.x; i < count; i += threads) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace

size_t squared_norm_workspace(int64_t count) { return size_t(parts_of(count)) * sizeof(double); }

void squared_norm(const float* x, int64_t count, double* result, void* workspace, cudaStream_t stream) {
  auto* parts = static_cast<double*>(workspace);
  const int64_t blocks = parts_of(count);
  const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0;
  if (blocks > 0) launch(part_norms_kernel, dim3(unsigned(blocks)), dim3(threads), 0, stream, count, x, aligned, parts);
  launch(sum_norms_kernel, dim3(1), dim3(threads), 0, stream, blocks, parts, result);
}

}  // namespace gigpo::cuda
