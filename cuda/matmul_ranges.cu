// Second stage of products whose k was split into ranges, each summed by different blocks.
#include "cuda/launch.h"
#include "cuda/matmul_output.cuh"

namespace gigpo::cuda {

namespace {

constexpr int sum_threads = 256;

// Sum of the ranges in order, four columns per thread.
__global__ __launch_bounds__(sum_threads) void add_ranges_kernel(int ranges, MatmulOutput sums, MatmulOutput out) {
  wait_for_previous_kernel();
  const int64_t i = int64_t(blockIdx.x) * sum_threads + threadIdx.x, fours = sums.c_stride / 4;
  const int64_t row = i / fours, column = i % fours * 4;
  if (row >= out.m) return;
  float values[4] = {};
  for (int range = 0; range < ranges; range++) {
    const float* const from = static_cast<const float*>(sums.c) + (range * out.m + row) * sums.c_stride + column;
    const auto four = *reinterpret_cast<const Four<float>*>(from);
#pragma unroll
    for (int e = 0; e < 4; e++) values[e] += four.values[e];
  }
  write_four(out, row, column, values);
}

}  // namespace

RangeRoom::RangeRoom(void* workspace, size_t workspace_bytes) {
  const size_t unaligned = (16 - reinterpret_cast<uintptr_t>(workspace) % 16) % 16;
  data = static_cast<char*>(workspace) + unaligned;
  bytes = workspace && workspace_bytes > unaligned ? workspace_bytes - unaligned : 0;
}

MatmulOutput RangeRoom::output(int64_t m, int64_t n) const {
  const int64_t stride = (n + 3) / 4 * 4;
  return {m, stride, data, stride, nullptr, nullptr, 0, false, false, true};
}

void add_ranges(int64_t ranges, const MatmulOutput& sums, const MatmulOutput& out, cudaStream_t stream) {
  const int64_t blocks = (sums.m * (sums.n / 4) + sum_threads - 1) / sum_threads;
  launch_early(add_ranges_kernel, dim3(unsigned(blocks)), dim3(sum_threads), 0, stream, int(ranges), sums, out);
}

}  // namespace gigpo::cuda
