// Partial softmax sums over pages of keys, and their combination, bit-identical in all kernels. Each step is written as a specific
// instruction, so that compilers cannot choose a different one.
#pragma once
#include "cuda/attention_tiles.cuh"

namespace gigpo::cuda {

constexpr int page_size = PagedCache::page_size;

// Partial softmax of a row: the largest score, and Σ 2^(c (s - max)).
struct alignas(8) RowSum {
  float max, sum;
};

// Factor that converts a sum relative to `from` to a sum relative to `to`; exactly 1 if both are equal.
__device__ inline float rescale(float from, float to, float scale) {
  return from == -INFINITY ? 0 : power_of_2((from - to) * scale);
}

// Accumulation of the spans: total = total · before + span · now.
struct Fold {
  float before, now;

  __device__ static Fold of(RowSum& total, RowSum span, float scale) {
    const float top = fmaxf(total.max, span.max);
    const Fold fold = {rescale(total.max, top, scale), rescale(span.max, top, scale)};
    total = {top, fold.of(total.sum, span.sum)};
    return fold;
  }
  __device__ float of(float total, float span) const { return fmaf(total, before, span * now); }
};

// Steps of the queries that stay in registers: all that fit where there are many rows. With a single row tile, memory
// bandwidth is the limit anyway.
template <int D, int row_tiles>
using PageQueries = LeftRows<row_tiles, D, (row_tiles > 1 && D <= 64) ? D / 16 : 0>;

// A warp's part of a span. A lane has rows lane / 4 and lane / 4 + 8 of each 16.
template <int D, int row_tiles>
struct WarpSums {
  float out[row_tiles][D / 8][4];
  RowSum rows[row_tiles][2];

  __device__ void clear_all() {
#pragma unroll
    for (int r = 0; r < row_tiles; r++) {
      clear(out[r]);
      rows[r][0] = rows[r][1] = {-INFINITY, 0};
    }
  }

  // Adds the keys and values of a page whose first token is `first_token`. Each row sees tokens up to its `last_seen`,
  // at most `window` of them.
  template <bool windowed>
  __device__ void add_page(const PageQueries<D, row_tiles>& queries, HeadTile<D> keys, HeadTile<D> values, int first_token,
                           const int (&last_seen)[row_tiles][2], int window, float scale) {
    float scores[row_tiles][page_size / 8][4];
    queries.template multiply<page_size>(scores, keys);
    uint32_t weights[row_tiles][4];
#pragma unroll
    for (int r = 0; r < row_tiles; r++) {
      weigh<windowed>(scores[r], out[r], rows[r], first_token, last_seen[r], window, scale);
      as_left(weights[r], scores[r], 0);
    }
    multiply_by_columns<row_tiles, D>(out, weights, values, 0);
  }

  template <bool windowed>
  __device__ static void weigh(float (&scores)[page_size / 8][4], float (&out)[D / 8][4], RowSum (&rows)[2], int first_token,
                               const int (&last_seen)[2], int window, float scale) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float top = -INFINITY;
#pragma unroll
      for (int n = 0; n < page_size / 8; n++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          float& score = scores[n][half * 2 + i];
          const int token = first_token + n * 8 + lane_index() % 4 * 2 + i;
          if (token > last_seen[half] || (windowed && token <= last_seen[half] - window)) score = -INFINITY;
          top = fmaxf(top, score);
        }
      }
      top = fmaxf(rows[half].max, quad_max(top));
      const float origin = top == -INFINITY ? 0 : top * scale, factor = rescale(rows[half].max, top, scale);
      float sum = 0;
#pragma unroll
      for (int n = 0; n < page_size / 8; n++) {
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; i++) {
          scores[n][i] = power_of_2(fmaf(scores[n][i], scale, -origin));
          sum += scores[n][i];
        }
      }
      rows[half] = {top, fmaf(rows[half].sum, factor, sum)};
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        out[n][half * 2] *= factor;
        out[n][half * 2 + 1] *= factor;
      }
    }
  }
};

}  // namespace gigpo::cuda
