// RMS norm of rows, or of each head of a row: y = A + (w + offset) ⊙ x s with s = (mean x² + ε)^(-1/2).
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/teams.cuh"

namespace gigpo::cuda {

namespace {

// Memory traffic: 2 · bytes of an element, 3 with `added`. `added` may be `out`: each thread reads an element before it
// writes there.
template <class T, int width, int lanes>
__global__ void __launch_bounds__(largest_block)
rms_norm_kernel(RowGroups groups, const T* x, int64_t x_stride, const T* weight, float offset, float epsilon, const T* added,
                int64_t added_stride, T* out, int64_t out_stride, float* scales) {
  wait_for_previous_kernel();
  using Threads = Team<lanes>;
  const int64_t group = int64_t{blockIdx.x} * Threads::teams() + Threads::index();
  const bool active = group < groups.count;
  const T* from = x + (active ? groups.offset(group, x_stride) : 0);
  const int packs = active ? groups.size / width : 0;
  const int step = Threads::size();
  float values[held_by<lanes>][width], squares = 0;
#pragma unroll
  for (int k = 0; k < held_by<lanes>; k++) {
    const int i = Threads::rank() + k * step;
    if (i < packs) load(from + i * width, values[k]);
  }
#pragma unroll
  for (int k = 0; k < held_by<lanes>; k++) {
    if (Threads::rank() + k * step >= packs) break;
#pragma unroll
    for (int c = 0; c < width; c++) squares += values[k][c] * values[k][c];
  }
  for (int i = rest_from<lanes>(Threads::rank(), step, packs); i < packs; i += step) {
    float more[width];
    load(from + i * width, more);
#pragma unroll
    for (int c = 0; c < width; c++) squares += more[c] * more[c];
  }
  const float scale = 1 / sqrtf(Threads::sum(squares) / float(groups.size) + epsilon);
  if (!active) return;
  if (scales && Threads::rank() == 0) scales[group] = scale;
  T* to = out + groups.offset(group, out_stride);
  const T* base = added ? added + groups.offset(group, added_stride) : nullptr;
  const auto write = [&](int i, const float (&v)[width]) {
    float w[width], sum[width];
    load(weight + i * width, w);
#pragma unroll
    for (int c = 0; c < width; c++) w[c] = (w[c] + offset) * (v[c] * scale);
    if (base) {
      load(base + i * width, sum);
#pragma unroll
      for (int c = 0; c < width; c++) w[c] += sum[c];
    }
    store(to + i * width, w);
  };
#pragma unroll
  for (int k = 0; k < held_by<lanes>; k++) {
    const int i = Threads::rank() + k * step;
    if (i >= packs) break;
    write(i, values[k]);
  }
  for (int i = rest_from<lanes>(Threads::rank(), step, packs); i < packs; i += step) {
    float more[width];
    load(from + i * width, more);
    write(i, more);
  }
}

}  // namespace

void rms_norm(Tensor x, NormWeight weight, int64_t groups, float epsilon, Tensor out, float* scales, cudaStream_t stream,
              Tensor added) {
  if (x.rows == 0 || x.columns == 0) return;
  const RowGroups shape(x, groups);
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int widest = full_width<T>;
    const bool packed =
        covered_by_packs(x, widest, shape.size) && covered_by_packs(out, widest, shape.size) &&
                        is_aligned(weight.values) && (!added || covered_by_packs(added, widest, shape.size));
    with_width<widest>(packed, [&](auto width) {
      const TeamPlan plan(shape.size / width);
      with_team(plan, [&](auto lanes) {
        const auto blocks = unsigned((shape.count + plan.teams - 1) / plan.teams);
        launch_early(rms_norm_kernel<T, width, lanes>, dim3(blocks), dim3(plan.threads), 0, stream, shape, static_cast<const T*>(x.data), x.stride,
                     static_cast<const T*>(weight.values.data), weight.offset, epsilon, static_cast<const T*>(added.data), added.stride,
                     static_cast<T*>(out.data), out.stride, scales);
      });
    });
  });
}

}  // namespace gigpo::cuda
