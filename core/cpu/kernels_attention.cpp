// Parts of attention that are not matrix products, and decoding over a paged KV cache.
#include "core/cpu/kernels.h"
#include "core/cpu/vector_bf16.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

constexpr int64_t page = 16;  // PagedCache::page_size: one AVX-512 register
constexpr int vecs = page / lanes;

GIGPO_INLINE Vec masked(Vec v, int64_t valid, float otherwise) {
  return lane_index() < broadcast(int32_t(valid < lanes ? valid : lanes)) ? v : broadcast(otherwise);
}

// Keys that query `row` of a block sees (PackedRows::sees): keys of its window, at or before its own column, whose end is after the query.
struct Visible {
  int64_t begin, open, end;  // columns; none before `begin` is visible, all from there to `open`, none from `end` on
  int32_t query;
  const int32_t* ends;

  [[gnu::always_inline]] Visible(const SeenKeys& keys, int64_t row) : query(keys.first_query + int32_t(row)), ends(keys.ends) {
    end = keys.own + row < keys.columns ? keys.own + row + 1 : keys.columns;
    open = end < keys.open ? end : keys.open;
    begin = keys.begins ? keys.begins[row] - keys.before : 0;
  }

  [[gnu::always_inline]] Vec keep(Vec v, int64_t column, float otherwise) const {
    if (column + lanes <= open && column >= begin) return v;  // the common case
    const IntVec at = lane_index() + broadcast(int32_t(column));
    const auto seen = (at < broadcast(int32_t(end))) & (load(ends + column) > broadcast(query));
    return (seen & (at >= broadcast(int32_t(begin)))) ? v : broadcast(otherwise);
  }
};

// Scores beyond a row's last column are loaded but never counted: `stride` leaves room for a whole vector.
static void softmax(int64_t rows, const SeenKeys& keys, float* scores, int64_t stride, float scale, float* log_sums,
                    int64_t log_stride) {
  constexpr float nothing = -__builtin_inff();
  for (int64_t r = 0; r < rows; r++) {
    float* row = scores + r * stride;
    const Visible seen(keys, r);
    Vec highest = broadcast(nothing);
    for (int64_t i = 0; i < seen.end; i += lanes) highest = max(highest, seen.keep(load(row + i), i, nothing));
    const float top = max(highest) * scale;
    Vec total{};
    for (int64_t i = 0; i < keys.columns; i += lanes) {
      const Vec p = seen.keep(exp(load(row + i) * broadcast(scale) - broadcast(top)), i, 0);
      total += p;
      store(row + i, p);
    }
    const float whole = sum(total);
    const Vec inverse = broadcast(1 / whole);
    for (int64_t i = 0; i < seen.end; i += lanes) store(row + i, load(row + i) * inverse);
    log_sums[r * log_stride] = top + log(broadcast(whole))[0];
  }
}

static void probabilities(int64_t rows, const SeenKeys& keys, float* scores, int64_t stride, float scale,
                          const float* log_sums, int64_t log_stride) {
  for (int64_t r = 0; r < rows; r++) {
    float* row = scores + r * stride;
    const Visible seen(keys, r);
    const Vec log_sum = broadcast(log_sums[r * log_stride]);
    for (int64_t i = 0; i < keys.columns; i += lanes) {
      store(row + i, seen.keep(exp(load(row + i) * broadcast(scale) - log_sum), i, 0));
    }
  }
}

static void scores_backward(int64_t rows, int64_t columns, int64_t head_size, const float* p, float* d_p,
                            int64_t stride, const float* d_out, int64_t d_out_stride, const float* out,
                            int64_t out_stride, float scale) {
  for (int64_t r = 0; r < rows; r++) {
    Vec products{};
    for (int64_t j = 0; j < head_size; j += lanes) {
      const int64_t valid = head_size - j < lanes ? head_size - j : lanes;
      products = fma(load(d_out + r * d_out_stride + j, valid), load(out + r * out_stride + j, valid), products);
    }
    const Vec delta = broadcast(sum(products));
    for (int64_t i = 0; i < columns; i += lanes) {
      float* d = d_p + r * stride + i;
      store(d, load(p + r * stride + i) * (load(d) - delta) * broadcast(scale));
    }
  }
}

GIGPO_INLINE void convert(float from, float* to) { *to = from; }
GIGPO_INLINE void convert(float from, uint16_t* to) { *to = round_to_bf16(broadcast(from))[0]; }

template <class T>
static void store_page(int64_t head_size, int64_t slot, const float* key, const float* value, T* keys, T* values) {
  for (int64_t j = 0; j < head_size; j++) {
    convert(key[j], keys + j * page + slot);
    convert(value[j], values + slot * head_size + j);
  }
}

// Queries are processed in small groups that share the loads of keys and values; 8 sums keep both multipliers busy.
constexpr int most_rows = lanes == 16 ? int(PagedKernels<float>::rows) : 4;
constexpr int pages_together(int rows) { return rows * vecs < 8 ? 8 / (rows * vecs) : 1; }

// scores[r][t] = query r · key t, for `count` pages of keys [D][page].
template <int rows, int count, class T>
GIGPO_INLINE void score_pages(const PagedQuery* queries, int64_t head_size, const int32_t* pages, const T* keys,
                              int64_t page_stride, float* scores, int64_t stride) {
  const float* query[rows];
  const T* key[count];
  for (int r = 0; r < rows; r++) query[r] = queries[r].query;
  for (int p = 0; p < count; p++) key[p] = keys + pages[p] * page_stride;
  Vec sums[rows][count * vecs] = {};
  for (int64_t j = 0; j < head_size; j++) {
    Vec k[count * vecs];
#pragma GCC unroll 8
    for (int v = 0; v < count * vecs; v++) k[v] = load(key[v / vecs] + j * page + v % vecs * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const Vec q = broadcast(query[r][j]);
#pragma GCC unroll 8
      for (int v = 0; v < count * vecs; v++) sums[r][v] = fma(q, k[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < count * vecs; v++) store(scores + r * stride + v * lanes, sums[r][v]);
  }
}

// out[r][j] (+)= Σ p[r][t] · value[t][j] over tokens [first, last), `count` vectors of columns j.
template <int rows, int count, class T>
GIGPO_INLINE void weigh_columns(const PagedQuery* queries, int64_t j, int64_t valid, bool adds, int64_t first, int64_t last,
                                const int32_t* pages, const T* values, int64_t head_size, int64_t page_stride,
                                const float* p, int64_t stride) {
  Vec sums[rows][count] = {};
  if (adds) {
    for (int r = 0; r < rows; r++) {
      for (int v = 0; v < count; v++) sums[r][v] = load(queries[r].out + j + v * lanes, valid);
    }
  }
  for (int64_t t = first; t < last; t++) {
    const T* value = values + pages[t / page] * page_stride + t % page * head_size + j;
    Vec column[count];
#pragma GCC unroll 2
    for (int v = 0; v < count; v++) column[v] = valid == lanes ? load(value + v * lanes) : load(value, valid);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const Vec weight = broadcast(p[r * stride + t]);
#pragma GCC unroll 2
      for (int v = 0; v < count; v++) sums[r][v] = fma(weight, column[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < count; v++) store(queries[r].out + j + v * lanes, sums[r][v], valid);
  }
}

template <int rows, class T>
GIGPO_INLINE void weigh(const PagedQuery* queries, bool adds, int64_t first, int64_t last, const int32_t* pages,
                        const T* values, int64_t head_size, int64_t page_stride, const float* p, int64_t stride) {
  int64_t j = 0;
  for (; j + 2 * lanes <= head_size; j += 2 * lanes)
    weigh_columns<rows, 2>(queries, j, lanes, adds, first, last, pages, values, head_size, page_stride, p, stride);
  for (; j < head_size; j += lanes) {
    const int64_t valid = head_size - j < lanes ? head_size - j : lanes;
    weigh_columns<rows, 1>(queries, j, valid, adds, first, last, pages, values, head_size, page_stride, p, stride);
  }
}

// Replaces the scores or weights of tokens that a query does not see, in a vector of tokens from t on.
GIGPO_INLINE Vec seen_by(const PagedQuery& query, int64_t t, Vec v, float otherwise) {
  v = masked(v, query.context - t, otherwise);
  if (t >= query.hidden) return v;
  return lane_index() < broadcast(int32_t(query.hidden - t)) ? broadcast(otherwise) : v;
}

// Paged attention of a block of queries. The order of every sum depends only on the token's position: results are bit-identical whether a
// token is computed with its whole prompt or alone after a cached prefix. Slots beyond a context are uninitialized (possibly NaN) and must
// not be used, not even with a factor of 0. Tokens before a window have a factor of exactly 0; pages before all windows of the block are skipped.
template <int rows, class T>
static void paged_block(const PagedQuery* queries, int64_t head_size, const int32_t* pages, const T* keys,
                        const T* values, int64_t page_stride, float scale, float* scores) {
  const int64_t shortest = queries[0].context, page_count = (queries[rows - 1].context + page - 1) / page;
  const int64_t first_page = queries[0].hidden / page, first = first_page * page;
  const int64_t stride = page_count * page;
  constexpr int together = pages_together(rows);
  int64_t i = first_page;
  for (; i + together <= page_count; i += together)
    score_pages<rows, together>(queries, head_size, pages + i, keys, page_stride, scores + i * page, stride);
  for (; i < page_count; i++)
    score_pages<rows, 1>(queries, head_size, pages + i, keys, page_stride, scores + i * page, stride);

  Vec inverse[rows];
  for (int r = 0; r < rows; r++) {
    float* row = scores + r * stride;
    const int64_t context = queries[r].context;
    Vec highest = broadcast(-__builtin_inff());
    for (int64_t t = first; t < context; t += lanes)
      highest = max(seen_by(queries[r], t, load(row + t), -__builtin_inff()), highest);
    const Vec top = broadcast(max(highest) * scale);
    Vec total{};
    for (int64_t t = first; t < context; t += lanes) {
      const Vec p = seen_by(queries[r], t, exp(load(row + t) * broadcast(scale) - top), 0);
      total += p;
      store(row + t, p);
    }
    inverse[r] = broadcast(1 / sum(total));
  }

  weigh<rows>(queries, false, first, shortest, pages, values, head_size, page_stride, scores, stride);
  for (int r = 0; r < rows; r++) {
    if (queries[r].context > shortest)
      weigh<1>(queries + r, true, shortest, queries[r].context, pages, values, head_size, page_stride, scores + r * stride, stride);
    for (int64_t j = 0; j < head_size; j += lanes) {
      float* out = queries[r].out + j;
      const int64_t valid = head_size - j < lanes ? head_size - j : lanes;
      store(out, load(out, valid) * inverse[r], valid);
    }
  }
}

template <class T>
static void paged(int64_t count, const PagedQuery* queries, int64_t head_size, const int32_t* pages, const T* keys,
                  const T* values, int64_t page_stride, float scale, float* scores) {
  constexpr decltype(&paged_block<1, T>) blocks[] = {
      paged_block<1, T>, paged_block<2, T>, paged_block<3, T>, paged_block<4, T>,
#if defined(__AVX512F__)
      paged_block<5, T>, paged_block<6, T>, paged_block<7, T>, paged_block<8, T>,
#endif
  };
  static_assert(sizeof blocks / sizeof *blocks == most_rows);
  for (int64_t first = 0; first < count; first += most_rows) {
    const int64_t rows = count - first < most_rows ? count - first : most_rows;
    blocks[rows - 1](queries + first, head_size, pages, keys, values, page_stride, scale, scores);
  }
}

extern const AttentionKernels attention_kernels = {softmax, probabilities, scores_backward,
                                             {store_page<float>, paged<float>}, {store_page<uint16_t>, paged<uint16_t>}};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
