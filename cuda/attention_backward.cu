// The gradients of attention, bf16. With c = 1 / √D, log Σ from the forward pass and delta_q = dO_q · O_q:
//   p_qk = exp(c q·k - log Σ_q),  ds_qk = p_qk (dO_q · v_k - delta_q)
//   dQ_q = c Σ_k ds_qk k,  dK_k = c Σ_q ds_qk q,  dV_k = Σ_q p_qk dO_q
// One kernel sums over keys and one over queries, each in registers and in a fixed order: computing p and ds twice costs
// two products of seven, and saves atomic sums. In both, rows of the scores are what is summed for, so that p and ds are
// left factors as they come and never go through shared memory. 64 rows a block, 16 a warp; what it passes over arrives in
// two buffers in turn.
#include "cuda/attention.h"
#include "cuda/attention_general.cuh"
#include "cuda/attention_tiles.cuh"
#include "cuda/launch.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int warps = 4, threads = warps * 32, block_rows = warps * 16;

// Rows that pass by at a time.
template <int D>
constexpr int tile_rows = D > 64 ? 32 : 64;

// A block's own two matrices, and two of what passes by, twice; then two numbers for each row of the latter.
template <int D>
constexpr size_t shared_bytes() {
  return (2 * block_rows + 4 * tile_rows<D>) * D * sizeof(__nv_bfloat16) + 4 * tile_rows<D> * sizeof(float);
}

struct Matrix {
  __nv_bfloat16* data;
  int64_t stride;
};

struct Arguments {
  Matrix d_out, q, k, v, d_q, d_k, d_v;
  const float *log_sums, *deltas;
  VisibleTokens visible;
  int tokens, heads, group;   // query heads of a key head
  float scale, base_2_scale;  // 1 / √D, log2(e) / √D
};

template <int D>
using Product = float[1][tile_rows<D> / 8][4];

// product = A · Bᵀ, with 16 rows of A in `a`.
template <int D>
__device__ void multiply(Product<D>& product, const uint32_t (&a)[D / 16][1][4], HeadTile<D> b) {
  clear(product[0]);
#pragma unroll
  for (int step = 0; step < D / 16; step++) multiply_by_rows<1, D, tile_rows<D>>(product, a[step], b, step);
}

// The same, with A's rows from `row` on in shared memory.
template <int D>
__device__ void multiply(Product<D>& product, HeadTile<D> from, int row, HeadTile<D> b) {
  clear(product[0]);
#pragma unroll 4  // all eight, of 128 numbers a head, keep more addresses than there are registers left
  for (int step = 0; step < D / 16; step++) {
    uint32_t a[1][4];
    from.left(a[0], row, step);
    multiply_by_rows<1, D, tile_rows<D>>(product, a, b, step);
  }
}

// sum += left · B
template <int D>
__device__ void add_product(float (&sum)[1][D / 8][4], const Product<D>& left, HeadTile<D> b) {
#pragma unroll
  for (int step = 0; step < tile_rows<D> / 16; step++) {
    uint32_t a[1][4];
    as_left(a[0], left[0], step);
    multiply_by_columns<1, D>(sum, a, b, step * 16);
  }
}

template <int D>
__global__ __launch_bounds__(threads, 2) void query_gradient_kernel(Arguments at) {
  constexpr int size = tile_rows<D>;
  const HeadTile<D> queries = {dynamic_shared<__nv_bfloat16>()}, gradients = {queries.data + block_rows * D},
                    passing = {gradients.data + block_rows * D};  // [2][keys, values][size]
  auto* ends = reinterpret_cast<int32_t*>(passing.data + 4 * size * D);
  const int head = int(blockIdx.x), kv_head = head / at.group;
  const int first = int(gridDim.y - 1 - blockIdx.y) * block_rows, last = min(first + block_rows, at.tokens) - 1;
  const int row = warp_index() * 16, warp_first = first + row, warp_last = min(warp_first + 15, last);

  TileFinder<size> finder = {at.visible.ends, at.tokens, first, last / size + 1};
  const auto copy_keys = [&](int stage) {
    finder.find();
    const int tile = finder.tile;
    if (tile < finder.limit) {
      const HeadTile<D> keys = {passing.data + stage * 2 * size * D}, values = {keys.data + size * D};
      keys.template copy_from<size, threads>(at.k.data + kv_head * D, at.k.stride, tile * size, at.tokens);
      values.template copy_from<size, threads>(at.v.data + kv_head * D, at.v.stride, tile * size, at.tokens);
      if (warp_index() == 0) finder.store_ends(ends + stage * size);
      finder.move_to(tile + 1);
    }
    copy_async_commit();
    return tile;
  };
  finder.move_to(at.visible.starts[first] / size);
  queries.template copy_from<block_rows, threads>(at.q.data + head * D, at.q.stride, first, at.tokens);
  gradients.template copy_from<block_rows, threads>(at.d_out.data + head * D, at.d_out.stride, first, at.tokens);
  int tile = copy_keys(0);

  float log_sum[2] = {}, delta[2] = {};  // in base 2; of rows lane / 4 and lane / 4 + 8
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int query = warp_first + half * 8 + lane_index() / 4;
    if (query >= at.tokens) continue;
    log_sum[half] = at.log_sums[int64_t(query) * at.heads + head] * log2_e;
    delta[half] = at.deltas[int64_t(query) * at.heads + head];
  }
  copy_async_wait<0>();
  __syncthreads();
  uint32_t query_parts[D / 16][1][4], gradient_parts[D / 16][1][4];
#pragma unroll
  for (int step = 0; step < D / 16; step++) {
    queries.left(query_parts[step][0], row, step);
    gradients.left(gradient_parts[step][0], row, step);
  }

  float d_q[1][D / 8][4];
  clear(d_q[0]);
  for (int stage = 0; tile < finder.limit; stage ^= 1) {
    const HeadTile<D> keys = {passing.data + stage * 2 * size * D}, values = {keys.data + size * D};
    const int first_key = tile * size;
    copy_async_wait<0>();
    __syncthreads();  // this tile is there, and the last one has been used
    tile = copy_keys(stage ^ 1);
    const Seen seen = seen_of<size>(ends + stage * size, first_key, warp_first, warp_last);
    if (seen == Seen::nothing) continue;
    Product<D> scores, d_weights;
    multiply<D>(scores, query_parts, keys);
    if (seen == Seen::part) hide<1, size>(scores, ends + stage * size, first_key, warp_first);
    multiply<D>(d_weights, gradient_parts, values);
#pragma unroll
    for (int n = 0; n < size / 8; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float p = power_of_2(fmaf(scores[0][n][i], at.base_2_scale, -log_sum[i / 2]));
        scores[0][n][i] = p * (d_weights[0][n][i] - delta[i / 2]);
      }
    }
    add_product<D>(d_q, scores, keys);
  }
  if (warp_first >= at.tokens) return;
  const float scale[2] = {at.scale, at.scale};
  write_rows<D>(d_q[0], scale, queries, row, at.d_q.data + head * D, at.d_q.stride, warp_first, at.tokens);
}

// Where the tokens that see a warp's 16 keys end: the last of them, and those of the keys that a lane holds.
struct KeyEnds {
  int longest, shortest, own[2];

  __device__ KeyEnds(const int32_t* ends, int first, int tokens) {
    for (int half = 0; half < 2; half++) {
      const int key = first + half * 8 + lane_index() / 4;
      own[half] = key < tokens ? ends[key] : 0;
    }
    longest = max(own[0], own[1]);
    shortest = min(own[0], own[1]);
    for (int distance = 4; distance < 32; distance *= 2) {
      longest = max(longest, __shfl_xor_sync(full_warp, longest, distance));
      shortest = min(shortest, __shfl_xor_sync(full_warp, shortest, distance));
    }
  }

  __device__ Seen seen_by(int first_query, int last_query, int first_key) const {
    if (last_query < first_key || first_query >= longest) return Seen::nothing;
    return first_query >= first_key + 15 && last_query < shortest ? Seen::all : Seen::part;
  }

  // As `hide` of cuda/attention_tiles.cuh, with keys as rows.
  template <int size>
  __device__ void hide(float (&scores)[size / 8][4], int first_key, int first_query) const {
#pragma unroll
    for (int n = 0; n < size / 8; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int query = first_query + n * 8 + lane_index() % 4 * 2 + i % 2, key = first_key + i / 2 * 8 + lane_index() / 4;
        if (key > query || query >= own[i / 2]) scores[n][i] = -INFINITY;
      }
    }
  }
};

template <int D>
__global__ __launch_bounds__(threads, 2) void key_gradient_kernel(Arguments at) {
  constexpr int size = tile_rows<D>;
  const HeadTile<D> keys = {dynamic_shared<__nv_bfloat16>()}, values = {keys.data + block_rows * D},
                    passing = {values.data + block_rows * D};  // [2][queries, gradients][size]
  auto* statistics = reinterpret_cast<float*>(passing.data + 4 * size * D);  // [2][log sums, deltas][size]
  const int kv_head = int(blockIdx.x), first = int(blockIdx.y) * block_rows;
  const int row = warp_index() * 16, warp_first = first + row;
  const KeyEnds ends(at.visible.ends, warp_first, at.tokens);
  __shared__ int warp_ends[warps];
  if (lane_index() == 0) warp_ends[warp_index()] = ends.longest;
  __syncthreads();
  int end = 0;
  for (int warp = 0; warp < warps; warp++) end = max(end, warp_ends[warp]);

  // Every tile of queries, of each query head that reads this key head.
  const int tiles = (end - first + size - 1) / size, steps = tiles * at.group;
  const auto head_of = [&](int step) { return kv_head * at.group + step / tiles; };
  const auto query_of = [&](int step) { return first + step % tiles * size; };
  const auto copy_queries = [&](int step, int stage) {
    if (step < steps) {
      const HeadTile<D> queries = {passing.data + stage * 2 * size * D}, gradients = {queries.data + size * D};
      const int column = head_of(step) * D, query = query_of(step);
      queries.template copy_from<size, threads>(at.q.data + column, at.q.stride, query, end);
      gradients.template copy_from<size, threads>(at.d_out.data + column, at.d_out.stride, query, end);
    }
    copy_async_commit();
  };
  const auto load_statistic = [&](int step) {
    const int query = step < steps ? query_of(step) + int(threadIdx.x) % size : end;
    if (int(threadIdx.x) >= 2 * size || query >= end) return 0.0f;
    const int64_t index = int64_t(query) * at.heads + head_of(step);
    return int(threadIdx.x) < size ? at.log_sums[index] * log2_e : at.deltas[index];
  };
  const auto store_statistic = [&](float value, int stage) {
    if (int(threadIdx.x) < 2 * size) statistics[stage * 2 * size + int(threadIdx.x)] = value;
  };
  keys.template copy_from<block_rows, threads>(at.k.data + kv_head * D, at.k.stride, first, at.tokens);
  values.template copy_from<block_rows, threads>(at.v.data + kv_head * D, at.v.stride, first, at.tokens);
  copy_queries(0, 0);
  store_statistic(load_statistic(0), 0);

  float d_k[1][D / 8][4], d_v[1][D / 8][4];
  clear(d_k[0]);
  clear(d_v[0]);
  for (int step = 0; step < steps; step++) {
    const int stage = step % 2, query = query_of(step);
    copy_async_wait<0>();
    __syncthreads();  // this tile is there, and the last one has been used
    copy_queries(step + 1, stage ^ 1);
    const float next_statistic = load_statistic(step + 1);
    const Seen seen = ends.seen_by(query, query + size - 1, warp_first);
    if (seen != Seen::nothing) {
      const HeadTile<D> queries = {passing.data + stage * 2 * size * D}, gradients = {queries.data + size * D};
      const float *log_sums = statistics + stage * 2 * size, *deltas = log_sums + size;
      Product<D> weights, d_scores;
      multiply<D>(weights, keys, row, queries);
      if (seen == Seen::part) ends.hide<size>(weights[0], warp_first, query);
#pragma unroll
      for (int n = 0; n < size / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int column = n * 8 + lane_index() % 4 * 2 + i % 2;
          weights[0][n][i] = power_of_2(fmaf(weights[0][n][i], at.base_2_scale, -log_sums[column]));
        }
      }
      add_product<D>(d_v, weights, gradients);
      multiply<D>(d_scores, values, row, gradients);
#pragma unroll
      for (int n = 0; n < size / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int column = n * 8 + lane_index() % 4 * 2 + i % 2;
          d_scores[0][n][i] = weights[0][n][i] * (d_scores[0][n][i] - deltas[column]);
        }
      }
      add_product<D>(d_k, d_scores, queries);
    }
    store_statistic(next_statistic, stage ^ 1);
  }
  copy_async_wait<0>();
  __syncthreads();
  if (warp_first >= at.tokens) return;
  const float scale[2] = {at.scale, at.scale}, one[2] = {1, 1};
  write_rows<D>(d_k[0], scale, keys, row, at.d_k.data + kv_head * D, at.d_k.stride, warp_first, at.tokens);
  write_rows<D>(d_v[0], one, values, row, at.d_v.data + kv_head * D, at.d_v.stride, warp_first, at.tokens);
}

// delta of every head of a token: D / 8 lanes a head, which read 16 bytes of each matrix.
template <int D>
__global__ __launch_bounds__(threads) void deltas_kernel(Matrix d_out, Matrix out, int heads, float* deltas) {
  constexpr int lanes = D / 8, heads_at_once = threads / lanes;
  const int64_t token = blockIdx.x;
  const int rank = int(threadIdx.x) % lanes;
  for (int first = 0; first < heads; first += heads_at_once) {  // all lanes stay, for the sum
    const int head = first + int(threadIdx.x) / lanes;
    float sum = 0;
    if (head < heads) {
      float d[8], o[8];
      load(d_out.data + token * d_out.stride + head * D + rank * 8, d);
      load(out.data + token * out.stride + head * D + rank * 8, o);
#pragma unroll
      for (int i = 0; i < 8; i++) sum = fmaf(d[i], o[i], sum);
    }
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(full_warp, sum, distance);
    if (head < heads && rank == 0) deltas[token * heads + head] = sum;
  }
}

template <int D>
void launch_backward(const Arguments& arguments, const Matrix& out, float* deltas, cudaStream_t stream) {
  launch(deltas_kernel<D>, dim3(unsigned(arguments.tokens)), dim3(threads), 0, stream, arguments.d_out, out,
         arguments.heads, deltas);
  const unsigned blocks = unsigned((arguments.tokens + block_rows - 1) / block_rows);
  launch(query_gradient_kernel<D>, dim3(unsigned(arguments.heads), blocks), dim3(threads), shared_bytes<D>(), stream,
         arguments);
  launch(key_gradient_kernel<D>, dim3(unsigned(arguments.heads / arguments.group), blocks), dim3(threads), shared_bytes<D>(),
         stream, arguments);
}

Matrix matrix_of(const Tensor& matrix) { return {bf16_of(matrix), matrix.stride}; }

}  // namespace

size_t attention_backward_workspace(int64_t tokens, int64_t heads) { return size_t(tokens * heads) * sizeof(float); }

void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums, int64_t head_size,
                        const VisibleTokens& visible, Tensor d_q, Tensor d_k, Tensor d_v, void* workspace,
                        cudaStream_t stream) {
  if (q.rows == 0) return;
  auto* deltas = static_cast<float*>(workspace);
  for (const Tensor& matrix : {d_out, q, k, v, out, d_q, d_k, d_v}) {
    if (in_tiles(matrix, head_size)) continue;
    general::attention_deltas(d_out, out, head_size, deltas, stream);
    general::attention_backward(d_out, q, k, v, log_sums, deltas, head_size, visible, d_q, d_k, d_v, stream);
    return;
  }
  const double scale = 1 / std::sqrt(double(head_size));
  const Arguments arguments = {matrix_of(d_out), matrix_of(q), matrix_of(k), matrix_of(v), matrix_of(d_q), matrix_of(d_k),
                               matrix_of(d_v), log_sums, deltas, visible, int(q.rows), int(q.columns / head_size),
                               int(q.columns / k.columns), float(scale), float(1.4426950408889634 * scale)};
  switch (head_size) {
    case 16: return launch_backward<16>(arguments, matrix_of(out), deltas, stream);
    case 32: return launch_backward<32>(arguments, matrix_of(out), deltas, stream);
    case 64: return launch_backward<64>(arguments, matrix_of(out), deltas, stream);
    default: return launch_backward<128>(arguments, matrix_of(out), deltas, stream);
  }
}

}  // namespace gigpo::cuda
