// C = op(A) · op(B) + bias + added in fp32 without tensor cores: for models in fp32, and as the reference
// implementation of the product. Each element is one chain of fused multiply-adds over k, in order, so its bits depend
// only on its row of op(A) and its column of op(B).
//
// A block of 256 threads computes 64 × 64 of C, a thread 4 × 4. It holds 16 of k in shared memory, k outermost so that
// a thread reads its four rows and four columns in one access each: 8 floats for 16 multiply-adds. The next 16 of k are
// prefetched into registers.
#include "cuda/launch.h"
#include "cuda/matmul.h"
#include "cuda/matmul_output.cuh"

namespace gigpo::cuda {

namespace {

constexpr int size = 64, depth = 16, threads = 256;
constexpr int line = size + 4;  // floats; the padding avoids bank conflicts when a column of k is written

// Operand [width][k] with any strides.
struct Strided {
  const float* data;
  int64_t width_stride, k_stride, width;
};

// This thread's four elements of the tile [first, first + 64) × [k, k + 16), zeros outside. Adjacent threads read
// adjacent memory.
struct Piece {
  float values[4];

  __device__ static int w(const Strided& from, int i) {
    return from.k_stride == 1 ? int(threadIdx.x) / depth + i * threads / depth : int(threadIdx.x) % size;
  }
  __device__ static int k(const Strided& from, int i) {
    return from.k_stride == 1 ? int(threadIdx.x) % depth : int(threadIdx.x) / size + i * threads / size;
  }

  __device__ void read(const Strided& from, int64_t first, int64_t k_first, int64_t k_end) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int64_t row = first + w(from, i), at = k_first + k(from, i);
      values[i] = row < from.width && at < k_end ? from.data[row * from.width_stride + at * from.k_stride] : 0.0f;
    }
  }

  __device__ void write(const Strided& from, float (&to)[depth][line]) const {
#pragma unroll
    for (int i = 0; i < 4; i++) to[k(from, i)][w(from, i)] = values[i];
  }
};

__global__ __launch_bounds__(threads) void matmul_f32_kernel(Strided a, Strided b, int64_t k, MatmulOutput out) {
  wait_for_previous_kernel();
  __shared__ __align__(16) float a_tile[depth][line];
  __shared__ __align__(16) float b_tile[depth][line];
  const int64_t across = (out.n + size - 1) / size;
  const int64_t row = blockIdx.x / across * size, column = blockIdx.x % across * size;
  const int thread_row = int(threadIdx.x) / 16 * 4, thread_column = int(threadIdx.x) % 16 * 4;
  float sums[4][4] = {};
  Piece next_a, next_b;
  next_a.read(a, row, 0, k);
  next_b.read(b, column, 0, k);
  for (int64_t at = 0; at < k; at += depth) {
    __syncthreads();  // the last tile has been read
    next_a.write(a, a_tile);
    next_b.write(b, b_tile);
    __syncthreads();
    next_a.read(a, row, at + depth, k);
    next_b.read(b, column, at + depth, k);
#pragma unroll
    for (int step = 0; step < depth; step++) {
      const auto four_a = *reinterpret_cast<const Four<float>*>(&a_tile[step][thread_row]);
      const auto four_b = *reinterpret_cast<const Four<float>*>(&b_tile[step][thread_column]);
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] = fmaf(four_a.values[i], four_b.values[j], sums[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) write_four(out, row + thread_row + i, column + thread_column, sums[i]);
}

}  // namespace

void matmul_f32(const Matmul& product, cudaStream_t stream) {
  const int64_t m = product.m(), n = product.n();
  if (m == 0 || n == 0) return;
  const Tensor &a = product.a, &b = product.b;
  const Strided left = {a.floats(), product.transpose_a ? 1 : a.stride, product.transpose_a ? a.stride : 1, m};
  const Strided right = {b.floats(), product.transpose_b ? b.stride : 1, product.transpose_b ? 1 : b.stride, n};
  const int64_t blocks = (m + size - 1) / size * ((n + size - 1) / size);
  launch_early(matmul_f32_kernel, dim3(unsigned(blocks)), dim3(threads), 0, stream, left, right, product.k(), output_of(product));
}

}  // namespace gigpo::cuda
