// Epilogue of a product: C = factor · sums + bias + added, in fp32, then converted to C's type, four adjacent elements
// of a row at a time.
#pragma once
#include <cuda_bf16.h>

#include "cuda/matmul.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

struct MatmulOutput {
  int64_t m, n;
  void* c;
  int64_t c_stride;
  const void* bias;
  const void* added;
  int64_t added_stride;
  bool bf16_c, bf16_bias;
  bool in_fours;  // n, strides and pointers allow four elements in one access
  float factor = 1;
};

inline bool multiple_of(const void* pointer, size_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

inline MatmulOutput output_of(const Matmul& p) {
  MatmulOutput out = {p.m(),          p.n(),          p.c.data,
                      p.c.stride,     p.bias.data,    p.added.data,
                      p.added.stride, p.c.type == Type::bf16, p.a.type == Type::bf16,
                      false};
  out.factor = p.factor;
  const size_t four = 4 * size_t(bytes_of(p.c.type));
  out.in_fours = out.n % 4 == 0 && out.c_stride % 4 == 0 && multiple_of(out.c, four) &&
                 (!out.added || (out.added_stride % 4 == 0 && multiple_of(out.added, four))) &&
                 multiple_of(out.bias, 4 * size_t(bytes_of(p.a.type)));
  return out;
}

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

template <class T>
__device__ void add_four(const T* from, int count, bool in_fours, float (&values)[4]) {
  if (in_fours) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] += to_float(four.values[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i < count) values[i] += to_float(from[i]);
    }
  }
}

template <class T>
__device__ void store_four(T* to, int count, bool in_fours, const float (&values)[4]) {
  if (in_fours) {
    store(to, values);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i < count) assign(to + i, values[i]);
    }
  }
}

// Writes columns [column, column + 4) of a row, as far as they exist.
__device__ inline void write_four(const MatmulOutput& out, int64_t row, int64_t column, float (&values)[4]) {
  using bf16 = __nv_bfloat16;
  if (row >= out.m || column >= out.n) return;
  const int count = int(out.n - column < 4 ? out.n - column : 4);
#pragma unroll
  for (float& value : values) value *= out.factor;
  if (out.bias) {
    if (out.bf16_bias) add_four(static_cast<const bf16*>(out.bias) + column, count, out.in_fours, values);
    else add_four(static_cast<const float*>(out.bias) + column, count, out.in_fours, values);
  }
  const int64_t at = row * out.c_stride + column, added_at = row * out.added_stride + column;
  if (out.bf16_c) {
    if (out.added) add_four(static_cast<const bf16*>(out.added) + added_at, count, out.in_fours, values);
    store_four(static_cast<bf16*>(out.c) + at, count, out.in_fours, values);
  } else {
    if (out.added) add_four(static_cast<const float*>(out.added) + added_at, count, out.in_fours, values);
    store_four(static_cast<float*>(out.c) + at, count, out.in_fours, values);
  }
}

// Part of a workspace for the sums of ranges of k, consecutive [m][n] matrices (cuda/matmul_ranges.cu).
struct RangeRoom {
  RangeRoom(void* workspace, size_t workspace_bytes);
  MatmulOutput output(int64_t m, int64_t n) const;  // of the first range; the others follow every m · c_stride
  void* data;
  size_t bytes;
};

// out = Σ sums over the ranges, in order.
void add_ranges(int64_t ranges, const MatmulOutput& sums, const MatmulOutput& out, cudaStream_t stream);

}  // namespace gigpo::cuda
