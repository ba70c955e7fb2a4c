// Attention of any type and head size up to 256, in fp32 and without tensor cores: fallback for shapes that the kernels
// of cuda/attention.h do not support. A warp handles one query of one head (for gradients of keys, one key). It
// iterates over the others 32 at a time: each lane computes the score of one, then all lanes add the 32 vectors, lane l
// elements l, l + 32, ...
#include "cuda/attention_general.cuh"

#include <cuda_bf16.h>

#include <cmath>

#include "cuda/launch.h"
#include "cuda/reduce.cuh"
#include "cuda/vector.cuh"

namespace gigpo::cuda::general {

namespace {

constexpr int warps = 4, lanes = 32, elements = int(largest_head) / lanes;
constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;

// View of a matrix of heads.
template <class Element>
struct Heads {
  Element* data;
  int64_t stride;

  __device__ Element* at(int64_t row, int head, int head_size) const {
    return data + row * stride + int64_t(head) * head_size;
  }
};

template <class Element>
Heads<Element> heads_of(const Tensor& matrix) {
  return {static_cast<Element*>(matrix.data), matrix.stride};
}

struct Shape {
  int64_t tokens;
  int heads, kv_heads, head_size;
  float scale;  // 1 / √D
};

Shape shape_of(const Tensor& q, int64_t kv_heads, int64_t head_size) {
  return {q.rows, int(q.columns / head_size), int(kv_heads), int(head_size), float(1 / std::sqrt(double(head_size)))};
}

__device__ float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(full_warp, value, distance));
  return value;
}

template <class Element>
__device__ float dot(const float* a, const Element* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; i++) sum = fmaf(a[i], to_float(b[i]), sum);
  return sum;
}

// sum += factor · vector
template <class Element>
__device__ void add_scaled(float (&sum)[elements], float factor, const Element* vector, int size) {
#pragma unroll
  for (int i = 0; i < elements; i++) {
    const int at = lane_index() + i * lanes;
    if (at < size) sum[i] = fmaf(factor, to_float(vector[at]), sum[i]);
  }
}

template <class Element>
__device__ void store_vector(const float (&sum)[elements], float factor, Element* to, int size) {
#pragma unroll
  for (int i = 0; i < elements; i++) {
    const int at = lane_index() + i * lanes;
    if (at < size) assign(to + at, sum[i] * factor);
  }
}

// Copy of a vector that all lanes read, private to the warp.
template <class Element>
__device__ void load_vector(float* to, const Element* from, int size) {
  __syncwarp();
  for (int i = lane_index(); i < size; i += lanes) to[i] = to_float(from[i]);
  __syncwarp();
}

// Keys and values of one head of a packed batch, as one query sees them.
template <class Element>
struct PackedKeys {
  Heads<const Element> k, v;
  int head, head_size;
  int64_t query;
  const int32_t* ends;

  __device__ bool sees(int64_t key) const { return query < ends[key]; }
  __device__ const Element* key(int64_t i) const { return k.at(i, head, head_size); }
  __device__ const Element* value(int64_t i) const { return v.at(i, head, head_size); }
};

// Keys and values of one head of a sequence in pages.
template <class Element>
struct PagedKeys {
  const Element *keys, *values;
  int64_t key_stride, value_stride;  // between pages
  const int32_t* pages;
  int head, head_size;

  static constexpr int64_t size = PagedCache::page_size;
  __device__ int64_t offset(int64_t i) const { return (head * size + i % size) * head_size; }
  __device__ bool sees(int64_t) const { return true; }
  __device__ const Element* key(int64_t i) const { return keys + pages[i / size] * key_stride + offset(i); }
  __device__ const Element* value(int64_t i) const { return values + pages[i / size] * value_stride + offset(i); }
};

// Attention of one query over keys [first, last], with a running maximum as in cuda/attention.cu. Returns log Σ exp(q·k
// / √D).
template <class Element, class Keys>
__device__ float attend(const Element* query, float* scratch, const Keys& keys, int64_t first, int64_t last, int head_size,
                        float scale, Element* out) {
  load_vector(scratch, query, head_size);
  float values[elements] = {}, max = -INFINITY, sum = 0;
  for (int64_t start = first; start <= last; start += lanes) {
    const int64_t mine = start + lane_index();
    float score = -INFINITY;
    if (mine <= last && keys.sees(mine)) score = dot(scratch, keys.key(mine), head_size) * scale * log2_e;
    const float top = fmaxf(max, warp_max(score)), origin = top == -INFINITY ? 0 : top;
    const float factor = exp2f(max - origin), weight = exp2f(score - origin);
    max = top;
    sum = sum * factor + warp_sum(weight);
#pragma unroll
    for (int i = 0; i < elements; i++) values[i] *= factor;
    for (int lane = 0; lane < lanes; lane++) {
      const float p = __shfl_sync(full_warp, weight, lane);
      if (p != 0) add_scaled(values, p, keys.value(start + lane), head_size);
    }
  }
  store_vector(values, sum > 0 ? 1 / sum : sum, out, head_size);
  return (max + log2f(sum)) * ln_2;
}

template <class Element>
__global__ __launch_bounds__(warps * lanes) void attention_kernel(Heads<const Element> q, Heads<const Element> k,
                                                                  Heads<const Element> v, Shape shape, VisibleTokens visible,
                                                                  Heads<Element> out, float* log_sums) {
  __shared__ float scratch[warps][largest_head];
  const int64_t token = blockIdx.x;
  const int head = int(blockIdx.y) * warps + warp_index();
  if (head >= shape.heads) return;
  const int D = shape.head_size;
  const PackedKeys<Element> keys = {k, v, head * shape.kv_heads / shape.heads, D, token, visible.ends};
  const float log_sum = attend(q.at(token, head, D), scratch[warp_index()], keys, visible.starts[token], token, D,
                               shape.scale, out.at(token, head, D));
  if (lane_index() == 0) log_sums[token * shape.heads + head] = log_sum;
}

template <class Element>
__global__ __launch_bounds__(warps * lanes) void paged_kernel(Heads<const Element> q, Shape shape, PagedBatch batch,
                                                              const Element* cached_keys, const Element* cached_values,
                                                              int64_t key_stride, int64_t value_stride, Heads<Element> out) {
  __shared__ float scratch[warps][largest_head];
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x, sequence = batch.sequences[token];
  const int head = int(blockIdx.y) * warps + warp_index();
  if (head >= shape.heads) return;
  const int D = shape.head_size;
  if (sequence < 0) {  // padding
    const float zeros[elements] = {};
    store_vector(zeros, 0, out.at(token, head, D), D);
    return;
  }
  const PagedKeys<Element> keys = {cached_keys, cached_values, key_stride, value_stride,
                                   batch.page_tables + sequence * batch.table_stride,
                                   head * shape.kv_heads / shape.heads, D};
  const int64_t last = batch.positions[token], first = batch.window > 0 ? max(last + 1 - batch.window, int64_t{0}) : 0;
  attend(q.at(token, head, D), scratch[warp_index()], keys, first, last, D, shape.scale, out.at(token, head, D));
}

template <class Element>
__global__ __launch_bounds__(warps * lanes) void deltas_kernel(Heads<const Element> d_out, Heads<const Element> out,
                                                               Shape shape, float* deltas) {
  const int64_t token = blockIdx.x;
  const int head = int(blockIdx.y) * warps + warp_index();
  if (head >= shape.heads) return;
  const Element *d = d_out.at(token, head, shape.head_size), *o = out.at(token, head, shape.head_size);
  float sum = 0;
  for (int i = lane_index(); i < shape.head_size; i += lanes) sum = fmaf(to_float(d[i]), to_float(o[i]), sum);
  sum = warp_sum(sum);
  if (lane_index() == 0) deltas[token * shape.heads + head] = sum;
}

template <class Element>
struct Backward {
  Heads<const Element> d_out, q, k, v;
  const float *log_sums, *deltas;
  VisibleTokens visible;
  Heads<Element> d_q, d_k, d_v;
};

// p, and the gradient of the score q·k: p (dO·v - delta) / √D.
struct ScoreGradient {
  float p = 0, d_score = 0;

  template <class Element>
  __device__ void compute(const float* a, const float* b, const Element* against_a, const Element* against_b,
                          const Shape& shape, float log_sum, float delta) {
    p = exp2f((dot(a, against_a, shape.head_size) * shape.scale - log_sum) * log2_e);
    d_score = p * (dot(b, against_b, shape.head_size) - delta) * shape.scale;
  }
};

template <class Element>
__global__ __launch_bounds__(warps * lanes) void query_gradient_kernel(Backward<Element> at, Shape shape) {
  __shared__ float scratch[warps][2][largest_head];
  const int64_t query = blockIdx.x;
  const int head = int(blockIdx.y) * warps + warp_index();
  if (head >= shape.heads) return;
  const int D = shape.head_size, kv_head = head * shape.kv_heads / shape.heads;
  auto& [q, d_out] = scratch[warp_index()];
  load_vector(q, at.q.at(query, head, D), D);
  load_vector(d_out, at.d_out.at(query, head, D), D);
  const float log_sum = at.log_sums[query * shape.heads + head], delta = at.deltas[query * shape.heads + head];
  float sum[elements] = {};
  for (int64_t start = at.visible.starts[query]; start <= query; start += lanes) {
    const int64_t key = start + lane_index();
    ScoreGradient gradient;
    if (PackedRows::sees(query, key, int64_t(at.visible.ends[key])))
      gradient.compute(q, d_out, at.k.at(key, kv_head, D), at.v.at(key, kv_head, D), shape, log_sum, delta);
    for (int lane = 0; lane < lanes; lane++) {
      const float d_score = __shfl_sync(full_warp, gradient.d_score, lane);
      if (d_score != 0) add_scaled(sum, d_score, at.k.at(start + lane, kv_head, D), D);
    }
  }
  store_vector(sum, 1, at.d_q.at(query, head, D), D);
}

// Gradients of one key and value. The queries that see a key are the tokens of its subtree, as far as windows reach.
template <class Element, bool windowed>
__global__ __launch_bounds__(warps * lanes) void key_gradient_kernel(Backward<Element> at, Shape shape) {
  __shared__ float scratch[warps][2][largest_head];
  const int64_t key = blockIdx.x, end = windowed ? at.visible.behind[key] : at.visible.ends[key];
  const int kv_head = int(blockIdx.y) * warps + warp_index();
  if (kv_head >= shape.kv_heads) return;
  const int D = shape.head_size, group = shape.heads / shape.kv_heads;
  auto& [k, v] = scratch[warp_index()];
  load_vector(k, at.k.at(key, kv_head, D), D);
  load_vector(v, at.v.at(key, kv_head, D), D);
  float d_k[elements] = {}, d_v[elements] = {};
  for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
    for (int64_t start = key; start < end; start += lanes) {
      const int64_t query = start + lane_index(), row = query * shape.heads + head;
      ScoreGradient gradient;
      if (query < end && (!windowed || at.visible.starts[query] <= key))
        gradient.compute(k, v, at.q.at(query, head, D), at.d_out.at(query, head, D), shape, at.log_sums[row],
                         at.deltas[row]);
      for (int lane = 0; lane < lanes && start + lane < end; lane++) {
        const float p = __shfl_sync(full_warp, gradient.p, lane), d_score = __shfl_sync(full_warp, gradient.d_score, lane);
        add_scaled(d_v, p, at.d_out.at(start + lane, head, D), D);
        add_scaled(d_k, d_score, at.q.at(start + lane, head, D), D);
      }
    }
  }
  store_vector(d_k, 1, at.d_k.at(key, kv_head, D), D);
  store_vector(d_v, 1, at.d_v.at(key, kv_head, D), D);
}

dim3 grid_of(int64_t tokens, int64_t heads) { return dim3(unsigned(tokens), unsigned((heads + warps - 1) / warps)); }

// Calls call(Element()) with the C++ type of a tensor's elements.
template <class Call>
void with_type(Type type, int64_t head_size, Call&& call) {
  if (head_size > largest_head) throw Error("INTERNAL", "Attention heads of more than 256 numbers are not supported.");
  if (type == Type::f32) call(float());
  else call(__nv_bfloat16());
}

}  // namespace

void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const VisibleTokens& visible, Tensor out, float* log_sums,
               cudaStream_t stream) {
  const Shape shape = shape_of(q, k.columns / head_size, head_size);
  with_type(q.type, head_size, [&](auto element) {
    using Element = decltype(element);
    launch(attention_kernel<Element>, grid_of(q.rows, shape.heads), dim3(warps * lanes), 0, stream,
           heads_of<const Element>(q), heads_of<const Element>(k), heads_of<const Element>(v), shape, visible,
           heads_of<Element>(out), log_sums);
  });
}

void attention_deltas(Tensor d_out, Tensor out, int64_t head_size, float* deltas, cudaStream_t stream) {
  const Shape shape = shape_of(out, 1, head_size);
  with_type(out.type, head_size, [&](auto element) {
    using Element = decltype(element);
    launch(deltas_kernel<Element>, grid_of(out.rows, shape.heads), dim3(warps * lanes), 0, stream,
           heads_of<const Element>(d_out), heads_of<const Element>(out), shape, deltas);
  });
}

void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, const float* log_sums, const float* deltas,
                        int64_t head_size, const VisibleTokens& visible, Tensor d_q, Tensor d_k, Tensor d_v,
                        cudaStream_t stream) {
  const Shape shape = shape_of(q, k.columns / head_size, head_size);
  with_type(q.type, head_size, [&](auto element) {
    using Element = decltype(element);
    const Backward<Element> arguments = {heads_of<const Element>(d_out), heads_of<const Element>(q),
                                         heads_of<const Element>(k),     heads_of<const Element>(v),
                                         log_sums, deltas, visible,
                                         heads_of<Element>(d_q), heads_of<Element>(d_k), heads_of<Element>(d_v)};
    launch(query_gradient_kernel<Element>, grid_of(q.rows, shape.heads), dim3(warps * lanes), 0, stream, arguments, shape);
    with_windows(visible.windowed(), [&](auto windowed) {
      launch(key_gradient_kernel<Element, windowed>, grid_of(q.rows, shape.kv_heads), dim3(warps * lanes), 0, stream, arguments, shape);
    });
  });
}

void paged_attention(Tensor q, int64_t kv_heads, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                     Tensor out, cudaStream_t stream) {
  const Shape shape = shape_of(q, kv_heads, head_size);
  with_type(q.type, head_size, [&](auto element) {
    using Element = decltype(element);
    launch_early(paged_kernel<Element>, grid_of(q.rows, shape.heads), dim3(warps * lanes), 0, stream, heads_of<const Element>(q),
                 shape, batch, static_cast<const Element*>(cache.keys.data), static_cast<const Element*>(cache.values.data),
                 cache.keys.stride, cache.values.stride, heads_of<Element>(out));
  });
}

}  // namespace gigpo::cuda::general
