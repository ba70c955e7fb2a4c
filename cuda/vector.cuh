// Helpers of row-wise kernels: access to 16 bytes of a row at a time if aligned, otherwise to single elements, and a grid over rows and
// columns. All computation is in fp32, whatever the storage type.
#pragma once
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/tensor.h"
#include "cuda/ptx.cuh"

namespace gigpo::cuda {

// `width` adjacent elements that are loaded and stored together.
template <class T, int width>
struct alignas(width * sizeof(T) < 16 ? width * sizeof(T) : 16) Pack {
  T values[width];
};

// Number of elements in 16 bytes.
template <class T>
constexpr int full_width = int(16 / sizeof(T));

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline void assign(float* to, float value) { *to = value; }
__device__ inline void assign(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

template <class T, int width>
__device__ void load(const T* from, float (&to)[width]) {
  const auto pack = *reinterpret_cast<const Pack<T, width>*>(from);
#pragma unroll
  for (int i = 0; i < width; i++) to[i] = to_float(pack.values[i]);
}

template <class T, int width>
__device__ void store_pack(T* to, const Pack<T, width>& pack) {
  using Words = std::conditional_t<sizeof(pack) == 16, uint4, uint2>;
  if constexpr (sizeof(pack) == sizeof(Words)) {
    Words words;
    std::memcpy(&words, &pack, sizeof(words));
    store_whole(to, words);
  } else {
    *reinterpret_cast<Pack<T, width>*>(to) = pack;
  }
}

template <class T, int width>
__device__ void store(T* to, const float (&from)[width]) {
  Pack<T, width> pack;
  if constexpr (std::is_same_v<T, __nv_bfloat16> && width % 2 == 0) {
#pragma unroll
    for (int i = 0; i < width; i += 2) {
      const uint32_t pair = pack_bf16(from[i], from[i + 1]);
      std::memcpy(&pack.values[i], &pair, sizeof(pair));
    }
  } else {
#pragma unroll
    for (int i = 0; i < width; i++) assign(&pack.values[i], from[i]);
  }
  store_pack(to, pack);
}

// Whether packs of `width` elements cover each row of a matrix and are aligned; `period` is a number of columns (a
// head, half of the row) whose multiples must be aligned too.
inline bool covered_by_packs(const Tensor& x, int width, int64_t period) {
  const int64_t pack = std::min<int64_t>(16, width * bytes_of(x.type));
  return reinterpret_cast<uintptr_t>(x.data) % uintptr_t(pack) == 0 && (x.rows <= 1 || x.stride % width == 0) &&
         x.columns % width == 0 && period % width == 0;
}
inline bool covered_by_packs(const Tensor& x, int width) { return covered_by_packs(x, width, x.columns); }

inline int full_width_of(Type type) { return int(16 / bytes_of(type)); }

// View of a matrix without gaps as one long row.
inline Tensor flattened(const Tensor& x) { return {x.data, x.type, 1, x.rows * x.columns, x.rows * x.columns}; }
inline bool has_gaps(const Tensor& x) { return x.rows > 1 && x.stride != x.columns; }

template <class T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<float>()) or body(TypeTag<__nv_bfloat16>()).
template <class Body>
void with_type(Type type, Body body) {
  if (type == Type::bf16) body(TypeTag<__nv_bfloat16>());
  else body(TypeTag<float>());
}

// Calls body(std::integral_constant<int, width>()), with width 1 unless `packed`.
template <int width, class Body>
void with_width(bool packed, Body body) {
  if (packed) body(std::integral_constant<int, width>());
  else body(std::integral_constant<int, 1>());
}

// Grid over `rows` × `packs`: a block covers 2^shift adjacent packs of as many rows as it has threads for. Blocks in y
// stride over the rest of very long rows.
struct RowGrid {
  static constexpr int threads = 256;

  RowGrid(int64_t rows, int64_t packs) : rows(rows), packs(packs) {
    while (shift < 8 && (int64_t{1} << shift) < packs) shift++;
    const int64_t rows_in_block = threads >> shift;
    blocks_x = unsigned((rows + rows_in_block - 1) / rows_in_block);
    blocks_y = unsigned(std::min<int64_t>((packs + (int64_t{1} << shift) - 1) >> shift, 65535));
  }

  __device__ int64_t row() const { return int64_t{blockIdx.x} * (threads >> shift) + (threadIdx.x >> shift); }
  __device__ int64_t first_pack() const { return (int64_t{blockIdx.y} << shift) + (threadIdx.x & ((1u << shift) - 1)); }
  __device__ int64_t pack_step() const { return int64_t{gridDim.y} << shift; }

  int64_t rows, packs;
  unsigned blocks_x = 0, blocks_y = 0;
  int shift = 5;
};

}  // namespace gigpo::cuda
