// The gradient of the RMS norm y = w ⊙ x s: with u = dy ⊙ w,
//   dx = s (u - x s² mean(u ⊙ x)),  dw = Σ dy ⊙ x s.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/ptx.cuh"
#include "cuda/teams.cuh"

namespace gigpo::cuda {

namespace {

constexpr int64_t most_parts = 512;  // of d_weight: enough blocks to fill a card

template <class T>
struct Backward {
  const T *d_out, *x, *weight;
  const float* scales;
  T* d_x;
  int64_t d_out_stride, x_stride, d_x_stride;
  bool accumulate;
  float* parts;  // [blocks][size], null where the weight is frozen
};

// d_x of one pack.
template <class T, int width>
__device__ void store_gradient(T* to, const float (&u)[width], const float (&x)[width], float scale, float pull,
                               bool accumulate) {
  float result[width] = {};
  if (accumulate) load(to, result);
#pragma unroll
  for (int c = 0; c < width; c++) result[c] += u[c] * scale - x[c] * pull;
  store(to, result);
}

// 3 · bytes of an element, 4 when accumulating. A team walks over groups and keeps its sums of d_weight in registers; the
// teams of a block are added up in their order.
template <class T, int width, int lanes>
__global__ void __launch_bounds__(lanes > 0 ? shared_block : largest_block, lanes > 0 ? 2 : 1)
rms_norm_backward_kernel(RowGroups groups, Backward<T> at) {
  using Threads = Team<lanes>;
  const int packs = groups.size / width;
  const int step = Threads::size(), rank = Threads::rank();
  float* part = at.parts ? at.parts + int64_t{blockIdx.x} * groups.size : nullptr;
  float sums[held_by<lanes>][width] = {};
  if (part && lanes == block_with_rest) {  // beyond what registers hold, sums grow in memory
    for (int c = (rank + held_by<lanes> * step) * width; c < groups.size; c += step * width) {
      for (int k = 0; k < width; k++) part[c + k] = 0;
    }
  }
  const int64_t stride = int64_t{gridDim.x} * Threads::teams();
  // The block's threads stay together: those without a group go along for the sum over the team.
  for (int64_t first = int64_t{blockIdx.x} * Threads::teams(); first < groups.count; first += stride) {
    const int64_t group = first + Threads::index();
    const bool active = group < groups.count;
    const int mine = active ? packs : 0;
    const int64_t known = active ? group : 0;
    const T *x = at.x + groups.offset(known, at.x_stride), *d_out = at.d_out + groups.offset(known, at.d_out_stride);
    T* d_x = at.d_x + groups.offset(known, at.d_x_stride);
    const float scale = at.scales[known];
    Pack<T, width> held_x[held_by<lanes>], held_d[held_by<lanes>];  // as stored: half the registers of fp32
    float products = 0;
#pragma unroll
    for (int k = 0; k < held_by<lanes>; k++) {
      const int i = rank + k * step;
      if (i >= mine) break;
      held_x[k] = reinterpret_cast<const Pack<T, width>*>(x)[i];
      held_d[k] = reinterpret_cast<const Pack<T, width>*>(d_out)[i];
    }
#pragma unroll
    for (int k = 0; k < held_by<lanes>; k++) {
      const int i = rank + k * step;
      if (i >= mine) break;
      float w[width];
      load(at.weight + i * width, w);
#pragma unroll
      for (int c = 0; c < width; c++) {
        const float v = to_float(held_x[k].values[c]), d = to_float(held_d[k].values[c]);
        products += d * w[c] * v;
        sums[k][c] += d * (v * scale);
      }
    }
    for (int i = rest_from<lanes>(rank, step, mine); i < mine; i += step) {
      float v[width], d[width], w[width];
      load(x + i * width, v);
      load(d_out + i * width, d);
      load(at.weight + i * width, w);
#pragma unroll
      for (int c = 0; c < width; c++) {
        products += d[c] * w[c] * v[c];
        if (part) part[i * width + c] += d[c] * (v[c] * scale);
      }
    }
    const float pull = scale * scale * scale * Threads::sum(products) / float(groups.size);
#pragma unroll
    for (int k = 0; k < held_by<lanes>; k++) {
      const int i = rank + k * step;
      if (i >= mine) break;
      float v[width], u[width];
      load(at.weight + i * width, u);
#pragma unroll
      for (int c = 0; c < width; c++) v[c] = to_float(held_x[k].values[c]), u[c] *= to_float(held_d[k].values[c]);
      store_gradient(d_x + i * width, u, v, scale, pull, at.accumulate);
    }
    for (int i = rest_from<lanes>(rank, step, mine); i < mine; i += step) {
      float v[width], d[width], u[width];
      load(x + i * width, v);
      load(d_out + i * width, d);
      load(at.weight + i * width, u);
#pragma unroll
      for (int c = 0; c < width; c++) u[c] *= d[c];
      store_gradient(d_x + i * width, u, v, scale, pull, at.accumulate);
    }
  }
  if (!part) return;
  float* shared = nullptr;
  if constexpr (lanes > 0) shared = dynamic_shared<float>();  // a block that is one team has nothing to add up
  for (int team = 0; team < Threads::teams(); team++) {
    if (team == Threads::index()) {
#pragma unroll
      for (int k = 0; k < held_by<lanes>; k++) {
        const int i = rank + k * step;
        if (i >= packs) break;
#pragma unroll
        for (int c = 0; c < width; c++) {
          const float sum = team == 0 ? sums[k][c] : shared[i * width + c] + sums[k][c];
          if (team == Threads::teams() - 1) part[i * width + c] = sum;
          else shared[i * width + c] = sum;
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace

size_t rms_norm_backward_workspace(int64_t rows, int64_t columns, int64_t groups) {
  return groups == 0 ? 0 : size_t(std::min(most_parts, rows * groups) * (columns / groups)) * sizeof(float);
}

void rms_norm_backward(Tensor d_out, Tensor x, Tensor weight, int64_t groups, const float* scales, Tensor d_x,
                       bool accumulate, Tensor d_weight, void* workspace, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return;
  const RowGroups shape(x, groups);
  auto* parts = d_weight ? static_cast<float*>(workspace) : nullptr;
  int64_t blocks = 0;
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int widest = full_width<T>;
    const bool packed = covered_by_packs(x, widest, shape.size) && covered_by_packs(d_out, widest, shape.size) &&
                        covered_by_packs(d_x, widest, shape.size) && is_aligned(weight);
    const Backward<T> at = {static_cast<const T*>(d_out.data), static_cast<const T*>(x.data),
                            static_cast<const T*>(weight.data), scales, static_cast<T*>(d_x.data), d_out.stride, x.stride,
                            d_x.stride, accumulate, parts};
    with_width<widest>(packed, [&](auto width) {
      const TeamPlan plan(shape.size / width);
      blocks = std::min(most_parts, (shape.count + plan.teams - 1) / plan.teams);
      with_team(plan, [&](auto lanes) {
        launch(rms_norm_backward_kernel<T, width, lanes>, dim3(unsigned(blocks)), dim3(plan.threads),
               plan.teams > 1 ? size_t(shape.size) * sizeof(float) : 0, stream, shape, at);
      });
    });
  });
  if (parts) add_column_sums(parts, blocks, shape.size, d_weight.floats(), stream);
}

}  // namespace gigpo::cuda
