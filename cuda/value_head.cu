// Head of a critic (core/kernels/value_loss.h): a warp handles one hidden state, computes its value, and overwrites
// d_hidden with the value's gradient times the weights. The gradient of the weights is a sum over rows, in the fixed
// order of columns.cu.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/reduce.cuh"
#include "cuda/teams.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 256, rows_in_block = threads / 32;

template <class T>
struct ValueHead {
  const T *hidden, *weight;
  T* d_hidden;
  int64_t rows, columns, hidden_stride, d_hidden_stride;
  const ValueHeadRow* inputs;
  ValueHeadResult* results;
  float* gradients;  // [rows], of the loss by the values
};

// Memory traffic: 2 · bytes of an element in training, else once; the weights stay in the cache.
template <class T, int width>
__global__ void __launch_bounds__(threads) value_rows_kernel(ValueHead<T> at, ValueHeadOptions options) {
  const int64_t row = int64_t{blockIdx.x} * rows_in_block + warp_index();
  if (row >= at.rows) return;  // the whole warp
  const T* hidden = at.hidden + row * at.hidden_stride;
  float sum = 0;
  for (int64_t c = int64_t{lane_index()} * width; c < at.columns; c += 32 * width) {
    float h[width], w[width];
    load(hidden + c, h);
    load(at.weight + c, w);
#pragma unroll
    for (int i = 0; i < width; i++) sum += h[i] * w[i];
  }
  sum = warp_sum(sum);
  ValueHeadResult result;
  const float gradient = value_head_row(sum, at.inputs[row], options, &result);
  if (lane_index() == 0) at.results[row] = result;
  if (!options.training) return;
  if (lane_index() == 0) at.gradients[row] = gradient;
  T* d_hidden = at.d_hidden + row * at.d_hidden_stride;
  for (int64_t c = int64_t{lane_index()} * width; c < at.columns; c += 32 * width) {
    float w[width];
    load(at.weight + c, w);
#pragma unroll
    for (int i = 0; i < width; i++) w[i] *= gradient;
    store(d_hidden + c, w);
  }
}

size_t gradient_bytes(int64_t rows) { return (size_t(rows) * sizeof(float) + 15) / 16 * 16; }

}  // namespace

size_t value_head_workspace(int64_t rows, int64_t columns) { return gradient_bytes(rows) + bias_backward_workspace(rows, columns); }

void value_head(Tensor hidden, Tensor weight, const ValueHeadRow* inputs, const ValueHeadOptions& options, ValueHeadResult* results,
                Tensor d_hidden, Tensor d_weight, void* workspace, cudaStream_t stream) {
  if (hidden.rows == 0) return;
  auto* gradients = static_cast<float*>(workspace);
  with_type(hidden.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int widest = full_width<T>;
    const bool packed = covered_by_packs(hidden, widest) && is_aligned(weight) &&
                        (!options.training || covered_by_packs(d_hidden, widest));
    const ValueHead<T> at = {static_cast<const T*>(hidden.data), static_cast<const T*>(weight.data), static_cast<T*>(d_hidden.data),
                             hidden.rows, hidden.columns, hidden.stride, d_hidden.stride, inputs, results, gradients};
    with_width<widest>(packed, [&](auto width) {
      launch(value_rows_kernel<T, width>, dim3(unsigned((hidden.rows + rows_in_block - 1) / rows_in_block)), dim3(threads), 0, stream,
             at, options);
    });
  });
  if (options.training) {
    add_weighted_rows(hidden, gradients, d_weight, static_cast<std::byte*>(workspace) + gradient_bytes(hidden.rows), stream);
  }
}

}  // namespace gigpo::cuda
