// dQ of attention (cuda/attention_backward.cu). A block sums over the keys that some of its queries see; keys are
// double-buffered.
#include "cuda/attention_gradients.cuh"
#include "cuda/launch.h"

namespace gigpo::cuda {

namespace {

constexpr int warps = gradient_warps, threads = gradient_threads;

template <int D>
constexpr int row_tiles = gradient_row_tiles<D>;

template <int D>
constexpr int block_rows = warps * row_tiles<D> * 16;

// Keys per tile. Their scores and score gradients are fp32 in registers, next to a warp's queries.
template <int D>
constexpr int tile_keys = D > 32 ? 32 : 64;

// Shared memory of a block: its queries and their gradients, and two buffers of keys and values with the end of each
// key's subtree.
template <int D>
constexpr size_t shared_bytes() {
  return (2 * block_rows<D> + 4 * tile_keys<D>) * D * sizeof(__nv_bfloat16) + 2 * tile_keys<D> * sizeof(int32_t);
}

template <int D, bool windowed>
__global__ __launch_bounds__(threads, 2) void query_gradient_kernel(AttentionGradients at) {
  constexpr int size = tile_keys<D>, tiles = row_tiles<D>, rows = block_rows<D>;
  const HeadTile<D> queries = {dynamic_shared<__nv_bfloat16>()}, gradients = queries.from(rows),
                    passing = gradients.from(rows);  // [2][keys, values][size]
  auto* ends = reinterpret_cast<int32_t*>(passing.from(4 * size).data);
  const int head = int(blockIdx.x), kv_head = head / at.group;
  // Later queries see more keys, so they start first.
  const int first = int(gridDim.y - 1 - blockIdx.y) * rows, last = min(first + rows, at.tokens) - 1;
  const int row = warp_index() * tiles * 16, warp_first = first + row, warp_last = min(warp_first + tiles * 16 - 1, last);

  TileFinder<size> finder = {at.visible.ends, at.tokens, first, last / size + 1};
  const auto copy_keys = [&](int stage) {
    finder.find();
    const int tile = finder.tile;
    if (tile < finder.limit) {
      const HeadTile<D> keys = passing.from(stage * 2 * size), values = keys.from(size);
      keys.template copy_from<size, threads>(at.k.data + kv_head * D, at.k.stride, tile * size, at.tokens);
      values.template copy_from<size, threads>(at.v.data + kv_head * D, at.v.stride, tile * size, at.tokens);
      if (warp_index() == 0) finder.store_ends(ends + stage * size);
      finder.move_to(tile + 1);
    }
    copy_async_commit();
    return tile;
  };
  finder.move_to(first_seen<windowed>(at.visible, first, last) / size);
  const WindowStarts<windowed> windows(at.visible, at.tokens, warp_first, warp_last);
  queries.template copy_from<rows, threads>(at.q.data + head * D, at.q.stride, first, at.tokens);
  gradients.template copy_from<rows, threads>(at.d_out.data + head * D, at.d_out.stride, first, at.tokens);
  int tile = copy_keys(0);

  float log_sum[tiles][2] = {}, delta[tiles][2] = {};  // in base 2; rows lane / 4 and lane / 4 + 8 of each 16
#pragma unroll
  for (int r = 0; r < tiles * 2; r++) {
    const int query = warp_first + r * 8 + lane_index() / 4;
    if (query >= at.tokens) continue;
    log_sum[r / 2][r % 2] = at.log_sums[int64_t(query) * at.heads + head] * log2_e;
    delta[r / 2][r % 2] = at.deltas[int64_t(query) * at.heads + head];
  }
  copy_async_wait<0>();
  __syncthreads();
  LeftRows<tiles, D> own_queries(queries.from(row)), own_gradients(gradients.from(row));
  own_queries.load();
  own_gradients.load();

  float d_q[tiles][D / 8][4];
#pragma unroll
  for (int r = 0; r < tiles; r++) clear(d_q[r]);
  for (int stage = 0; tile < finder.limit; stage ^= 1) {
    const HeadTile<D> keys = passing.from(stage * 2 * size), values = keys.from(size);
    const int first_key = tile * size;
    copy_async_wait<0>();
    __syncthreads();  // this tile has arrived, and the last one is no longer in use
    tile = copy_keys(stage ^ 1);
    const Seen seen = seen_of<size>(ends + stage * size, first_key, warp_first, warp_last, windows);
    if (seen == Seen::nothing) continue;
    float scores[tiles][size / 8][4], d_weights[tiles][size / 8][4];
    own_queries.template multiply<size>(scores, keys);
    if (seen == Seen::part) hide<tiles, size>(scores, ends + stage * size, first_key, warp_first, windows);
    own_gradients.template multiply<size>(d_weights, values);
#pragma unroll
    for (int r = 0; r < tiles; r++) {
#pragma unroll
      for (int n = 0; n < size / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float p = power_of_2(fmaf(scores[r][n][i], at.base_2_scale, -log_sum[r][i / 2]));
          scores[r][n][i] = p * (d_weights[r][n][i] - delta[r][i / 2]);
        }
      }
    }
    add_product<tiles, D, size>(d_q, scores, keys);
  }
  const float scale[2] = {at.scale, at.scale};
#pragma unroll
  for (int r = 0; r < tiles; r++) {
    write_rows<D>(d_q[r], scale, queries, row + r * 16, at.d_q.data + head * D, at.d_q.stride, warp_first + r * 16, at.tokens);
  }
}

}  // namespace

void query_gradient(const AttentionGradients& arguments, int64_t head_size, cudaStream_t stream) {
  with_head_size(head_size, [&](auto size) {
    constexpr int D = size, rows = block_rows<D>;
    const dim3 grid(unsigned(arguments.heads), unsigned((arguments.tokens + rows - 1) / rows));
    with_windows(arguments.visible.windowed(), [&](auto windowed) {
      launch(query_gradient_kernel<D, windowed>, grid, dim3(threads), shared_bytes<D>(), stream, arguments);
    });
  });
}

}  // namespace gigpo::cuda
