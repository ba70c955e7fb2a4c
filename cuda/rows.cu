// Moving rows: gather, scatter-add, copies with conversion, scaling. All are memory-bound: a gather moves twice the
// bytes of a row, a scatter-add reads each source once, and reads and writes its target once, a copy reads and writes
// each element.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

// Loads of a scatter-add that are in flight at once.
constexpr int ahead = 8;

// Memory traffic: 2 · bytes of an element.
template <class T, int width>
__global__ void __launch_bounds__(RowGrid::threads)
gather_kernel(RowGrid grid, const int32_t* indices, const int32_t* later, const T* from, int64_t from_stride, T* to,
              int64_t to_stride) {
  wait_for_previous_kernel();
  const int64_t row = grid.row();
  if (row >= grid.rows) return;
  const int32_t known = indices[row], index = known < 0 ? later[-1 - known] : known;
  const T* source = from + index * from_stride;
  for (int64_t i = grid.first_pack(); i < grid.packs; i += grid.pack_step()) {
    const auto pack = reinterpret_cast<const Pack<T, width>*>(source)[i];
    reinterpret_cast<Pack<T, width>*>(to + row * to_stride)[i] = pack;
  }
}

// Memory traffic: the bytes of an element for each source, and those of the target twice. The sum starts with the value
// of the target, as in a loop over the sources.
template <class From, class To, int width>
__global__ void __launch_bounds__(RowGrid::threads)
scatter_add_kernel(RowGrid grid, const int32_t* targets, const int32_t* offsets, const int32_t* sources, const From* from,
                   int64_t from_stride, To* to, int64_t to_stride) {
  const int64_t target = grid.row();
  if (target >= grid.rows) return;
  const int64_t first = offsets[target], end = offsets[target + 1];
  if (first == end) return;
  To* row = to + targets[target] * to_stride;
  for (int64_t i = grid.first_pack(); i < grid.packs; i += grid.pack_step()) {
    float sums[width];
    load(row + i * width, sums);
    for (int64_t j = first; j < end; j += ahead) {
      float values[ahead][width];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        if (j + k < end) load(from + sources[j + k] * from_stride + i * width, values[k]);
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        if (j + k >= end) break;
#pragma unroll
        for (int c = 0; c < width; c++) sums[c] += values[k][c];
      }
    }
    store(row + i * width, sums);
  }
}

// Memory traffic: the bytes of an element of both types.
template <class From, class To, int width>
__global__ void __launch_bounds__(RowGrid::threads)
copy_kernel(RowGrid grid, const From* from, int64_t from_stride, To* to, int64_t to_stride) {
  wait_for_previous_kernel();
  const int64_t row = grid.row();
  if (row >= grid.rows) return;
  for (int64_t i = grid.first_pack(); i < grid.packs; i += grid.pack_step()) {
    if constexpr (std::is_same_v<From, To>) {  // bits are copied unchanged, including NaN payloads
      const auto pack = reinterpret_cast<const Pack<From, width>*>(from + row * from_stride)[i];
      reinterpret_cast<Pack<To, width>*>(to + row * to_stride)[i] = pack;
    } else {
      float values[width];
      load(from + row * from_stride + i * width, values);
      store(to + row * to_stride + i * width, values);
    }
  }
}

// Memory traffic: 2 · bytes of an element.
template <class T, int width>
__global__ void __launch_bounds__(RowGrid::threads) scale_kernel(RowGrid grid, T* x, int64_t stride, float factor) {
  wait_for_previous_kernel();
  const int64_t row = grid.row();
  if (row >= grid.rows) return;
  for (int64_t i = grid.first_pack(); i < grid.packs; i += grid.pack_step()) {
    float values[width];
    load(x + row * stride + i * width, values);
#pragma unroll
    for (int c = 0; c < width; c++) values[c] *= factor;
    store(x + row * stride + i * width, values);
  }
}

bool is_empty(const Tensor& x) { return x.rows == 0 || x.columns == 0; }

template <class From, class To>
void launch_scatter_add(const int32_t* targets, const int32_t* offsets, const int32_t* sources, int64_t count, Tensor from,
                        Tensor to, cudaStream_t stream) {
  constexpr int widest = std::min(full_width<From>, full_width<To>);
  with_width<widest>(covered_by_packs(from, widest) && covered_by_packs(to, widest), [&](auto width) {
    const RowGrid grid(count, to.columns / width);
    launch(scatter_add_kernel<From, To, width>, dim3(grid.blocks_x, grid.blocks_y), dim3(RowGrid::threads), 0, stream, grid,
           targets, offsets, sources, static_cast<const From*>(from.data), from.stride, static_cast<To*>(to.data),
           to.stride);
  });
}

template <class From, class To>
void launch_copy(Tensor from, Tensor to, cudaStream_t stream) {
  constexpr int widest = std::min(full_width<From>, full_width<To>);
  with_width<widest>(covered_by_packs(from, widest) && covered_by_packs(to, widest), [&](auto width) {
    const RowGrid grid(to.rows, to.columns / width);
    launch_early(copy_kernel<From, To, width>, dim3(grid.blocks_x, grid.blocks_y), dim3(RowGrid::threads), 0, stream, grid,
                 static_cast<const From*>(from.data), from.stride, static_cast<To*>(to.data), to.stride);
  });
}

}  // namespace

void gather(const int32_t* indices, Tensor from, Tensor to, const int32_t* later, cudaStream_t stream) {
  if (is_empty(to)) return;
  with_type(to.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width<full_width<T>>(covered_by_packs(from, full_width<T>) && covered_by_packs(to, full_width<T>), [&](auto width) {
      const RowGrid grid(to.rows, to.columns / width);
      launch_early(gather_kernel<T, width>, dim3(grid.blocks_x, grid.blocks_y), dim3(RowGrid::threads), 0, stream, grid, indices,
                   later, static_cast<const T*>(from.data), from.stride, static_cast<T*>(to.data), to.stride);
    });
  });
}

void scatter_add(const int32_t* targets, const int32_t* offsets, const int32_t* sources, int64_t count, Tensor from,
                 Tensor to, cudaStream_t stream) {
  if (count == 0 || to.columns == 0) return;
  const auto start = from.type == Type::f32  ? launch_scatter_add<float, float>
                     : to.type == Type::f32 ? launch_scatter_add<__nv_bfloat16, float>
                                            : launch_scatter_add<__nv_bfloat16, __nv_bfloat16>;
  start(targets, offsets, sources, count, from, to, stream);
}

void scale(Tensor x, float factor, cudaStream_t stream) {
  if (is_empty(x)) return;
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width<full_width<T>>(covered_by_packs(x, full_width<T>), [&](auto width) {
      const RowGrid grid(x.rows, x.columns / width);
      launch_early(scale_kernel<T, width>, dim3(grid.blocks_x, grid.blocks_y), dim3(RowGrid::threads), 0, stream, grid,
                   static_cast<T*>(x.data), x.stride, factor);
    });
  });
}

void copy(Tensor from, Tensor to, cudaStream_t stream) {
  if (is_empty(to)) return;
  if (!has_gaps(from) && !has_gaps(to)) from = flattened(from), to = flattened(to);
  with_type(from.type, [&](auto from_tag) {
    with_type(to.type, [&](auto to_tag) {
      launch_copy<typename decltype(from_tag)::type, typename decltype(to_tag)::type>(from, to, stream);
    });
  });
}

}  // namespace gigpo::cuda
