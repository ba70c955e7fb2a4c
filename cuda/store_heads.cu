// From the projection of new tokens to paged attention: query and key norm (cuda/rms_norm.cu), rotation
// (cuda/rotary.cu) and the store into pages, in one kernel instead of four of about 2 us each in every layer of every
// step. Eight lanes share a head: a thread handles packs of its lower half and the packs of the upper half that are
// rotated with them.
#include "cuda/attention.h"
#include "cuda/launch.h"
#include "cuda/rotary.cuh"
#include "cuda/teams.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 128, page_size = int(PagedCache::page_size);
using Lanes = Team<8>;

template <class T>
struct NewHeads {
  T* q;
  const T *k, *v;
  T *keys, *values;
  int64_t q_stride, k_stride, v_stride, key_stride, value_stride;  // per token; per page
  int tokens, heads, kv_heads, half;
  const T *query_norm, *key_norm;
  float query_offset, key_offset;  // added to the weights of the norms
  float epsilon;
  Rotary rotary;
  PagedBatch batch;
};

__device__ float rounded(float x, const float*) { return x; }
__device__ float rounded(float x, const __nv_bfloat16*) { return __bfloat162float(__float2bfloat16_rn(x)); }

// Memory traffic: at most 2 · bytes of an element.
template <class T, int width>
__global__ void __launch_bounds__(threads) store_heads_kernel(NewHeads<T> at) {
  wait_for_previous_kernel();
  const int per_token = at.heads + 2 * at.kv_heads, index = int(blockIdx.x) * Lanes::teams() + Lanes::index();
  const int token = index / per_token, which = index - token * per_token;
  const int sequence = token < at.tokens ? at.batch.sequences[token] : -1;
  const bool active = sequence >= 0;
  const bool query = which < at.heads, value = which >= at.heads + at.kv_heads;
  const int head = query ? which : (which - at.heads) % at.kv_heads, size = 2 * at.half;
  const int packs = active ? at.half / width : 0;
  const T* const from = query ? at.q + token * at.q_stride + head * size
                              : (value ? at.v + token * at.v_stride : at.k + token * at.k_stride) + head * size;
  const T* const weight = value ? nullptr : query ? at.query_norm : at.key_norm;
  const float offset = query ? at.query_offset : at.key_offset;
  float scale = 1;
  if (at.query_norm) {  // uniform across the grid: all lanes take part in the sum
    // In the order in which rms_norm sums heads of up to 256 bf16, so that sampler and trainer are bit-identical.
    float squares = 0;
    for (int i = Lanes::rank(); i < 2 * packs; i += Lanes::size()) {
      float x[width];
      load(from + i * width, x);
#pragma unroll
      for (int c = 0; c < width; c++) squares += x[c] * x[c];
    }
    scale = 1 / sqrtf(Lanes::sum(squares) / float(size) + at.epsilon);
  }
  if (!active) return;

  T* to = at.q + token * at.q_stride + head * size;
  if (!query) {
    const int position = at.batch.positions[token];
    const int64_t page = at.batch.page_tables[sequence * at.batch.table_stride + position / page_size];
    to = (value ? at.values + page * at.value_stride : at.keys + page * at.key_stride) +
         (int64_t{head} * page_size + position % page_size) * size;
  }
  const bool turns = !value && at.rotary.cosine;
  const int64_t line = turns ? at.rotary.positions[token] * int64_t{at.half} : 0;
  for (int i = Lanes::rank(); i < packs; i += Lanes::size()) {
    const int j = i * width;
    float a[width], b[width];
    load(from + j, a);
    load(from + at.half + j, b);
    if (weight) {
      float low[width], high[width];
      load(weight + j, low);
      load(weight + at.half + j, high);
#pragma unroll
      for (int c = 0; c < width; c++) {
        a[c] = rounded((low[c] + offset) * (a[c] * scale), from);
        b[c] = rounded((high[c] + offset) * (b[c] * scale), from);
      }
    }
    if (turns) {
      float cosine[width], sine[width];
      load(at.rotary.cosine + line + j, cosine);
      load(at.rotary.sine + line + j, sine);
      turn(a, b, cosine, sine, 1);
    }
    if (query && !weight && !turns) return;
    store(to + j, a);
    store(to + at.half + j, b);
  }
}

}  // namespace

void store_heads(Tensor q, Tensor k, Tensor v, int64_t head_size, const HeadTransform& heads, const PagedBatch& batch,
                 const PagedCache& cache, cudaStream_t stream) {
  if (q.rows == 0) return;
  const int64_t half = head_size / 2;
  with_type(q.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto data = [](const Tensor& x) { return static_cast<T*>(x.data); };
    bool packed = in_packs(heads.rotary) && is_aligned(heads.query_norm.values) && is_aligned(heads.key_norm.values);
    for (const Tensor& x : {q, k, v, cache.keys, cache.values}) packed = packed && covered_by_packs(x, full_width<T>, half);
    const NewHeads<T> arguments = {data(q), data(k), data(v), data(cache.keys), data(cache.values), q.stride, k.stride, v.stride,
                                   cache.keys.stride, cache.values.stride, int(q.rows), int(q.columns / head_size),
                                   int(k.columns / head_size), int(half), data(heads.query_norm.values),
                                   data(heads.key_norm.values), heads.query_norm.offset, heads.key_norm.offset, heads.epsilon, heads.rotary, batch};
    const int64_t count = q.rows * (arguments.heads + 2 * arguments.kv_heads), teams = threads / 8;
    with_width<full_width<T>>(packed, [&](auto width) {
      launch_early(store_heads_kernel<T, width>, dim3(unsigned((count + teams - 1) / teams)), dim3(threads), 0, stream, arguments);
    });
  });
}

}  // namespace gigpo::cuda
