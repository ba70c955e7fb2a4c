// The parts of attention that are not matrix multiplications, and decoding over a paged cache.
#include "core/cpu/kernels.h"
#include "core/cpu/vector.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

constexpr int64_t page = 16;  // PagedCache::page_size: one AVX-512 register
constexpr int vecs = page / lanes;

GIGPO_INLINE Vec masked(Vec v, int64_t valid, float otherwise) {
  return lane_index() < broadcast(int32_t(valid < lanes ? valid : lanes)) ? v : broadcast(otherwise);
}

// The tokens that one token sees: the prompt, and its own reply up to itself.
struct Visible {
  int32_t prefix, branch, end;

  [[gnu::always_inline]] Vec keep(Vec v, int64_t column, float otherwise) const {
    const IntVec at = lane_index() + broadcast(int32_t(column));
    return (at < broadcast(end)) & ((at < broadcast(prefix)) | (at >= broadcast(branch))) ? v : broadcast(otherwise);
  }
};

// Scores beyond a row's last column are loaded but never counted: `stride` leaves room for a whole vector.
static void softmax(int64_t rows, int64_t first, int64_t columns, int32_t prefix, const int32_t* branches,
                    float* scores, int64_t stride, float scale, float* log_sums, int64_t log_stride) {
  constexpr float nothing = -__builtin_inff();
  for (int64_t r = 0; r < rows; r++) {
    float* row = scores + r * stride;
    const Visible seen{prefix, branches[r], int32_t(first + r + 1)};
    Vec highest = broadcast(nothing);
    for (int64_t i = 0; i < seen.end; i += lanes) highest = max(highest, seen.keep(load(row + i), i, nothing));
    const float top = max(highest) * scale;
    Vec total{};
    for (int64_t i = 0; i < columns; i += lanes) {
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

static void probabilities(int64_t rows, int64_t first, int64_t columns, int32_t prefix, const int32_t* branches,
                          float* scores, int64_t stride, float scale, const float* log_sums, int64_t log_stride) {
  for (int64_t r = 0; r < rows; r++) {
    float* row = scores + r * stride;
    const Visible seen{prefix, branches[r], int32_t(first + r + 1)};
    const Vec log_sum = broadcast(log_sums[r * log_stride]);
    for (int64_t i = 0; i < columns; i += lanes) {
      store(row + i, seen.keep(exp(load(row + i) * broadcast(scale) - log_sum), i, 0));
    }
  }
}

static void scores_backward(int64_t rows, int64_t columns, int64_t head_size, const float* p, float* d_p,
                            int64_t stride, const float* d_out, int64_t d_out_stride, const float* out,
                            int64_t out_stride, float scale) {
  for (int64_t r = 0; r < rows; r++) {
    float delta = 0;
    for (int64_t j = 0; j < head_size; j++) delta += d_out[r * d_out_stride + j] * out[r * out_stride + j];
    for (int64_t i = 0; i < columns; i += lanes) {
      float* d = d_p + r * stride + i;
      store(d, load(p + r * stride + i) * (load(d) - broadcast(delta)) * broadcast(scale));
    }
  }
}

static void store_page(int64_t head_size, int64_t slot, const float* key, const float* value, float* keys,
                       float* values) {
  for (int64_t j = 0; j < head_size; j++) {
    keys[j * page + slot] = key[j];
    values[slot * head_size + j] = value[j];
  }
}

// The order of every sum depends on the token's position alone: a token gives the same bits whether it is computed with
// its whole prompt or by itself after a cached beginning.
static void paged(int64_t heads, int64_t head_size, int64_t context, const float* q, const int32_t* pages,
                  const float* keys, const float* values, int64_t page_stride, float scale, float* scores, float* out) {
  for (int64_t h = 0; h < heads; h++, q += head_size, out += head_size) {
    Vec highest = broadcast(-__builtin_inff());
    for (int64_t t = 0; t < context; t += page) {
      const float* k = keys + pages[t / page] * page_stride;
      Vec score[vecs] = {};
      for (int64_t j = 0; j < head_size; j++) {
        for (int v = 0; v < vecs; v++) score[v] = fma(broadcast(q[j]), load(k + j * page + v * lanes), score[v]);
      }
      for (int v = 0; v < vecs; v++) {
        // Slots beyond the context hold whatever was there: never let it count.
        const int64_t valid = context - t - v * lanes;
        score[v] = masked(score[v] * broadcast(scale), valid < 0 ? 0 : valid, -__builtin_inff());
        highest = max(score[v], highest);
        store(scores + t + v * lanes, score[v]);
      }
    }
    const Vec top = broadcast(max(highest));
    Vec total{};
    for (int64_t t = 0; t < context; t += lanes) {
      const Vec p = exp(load(scores + t) - top);
      total += p;
      store(scores + t, p);
    }
    const Vec inverse = broadcast(1 / sum(total));
    for (int64_t j = 0; j < head_size; j += lanes) {
      const int64_t n = head_size - j < lanes ? head_size - j : lanes;
      Vec sum{};
      for (int64_t t = 0; t < context; t++) {
        const float* v = values + pages[t / page] * page_stride + t % page * head_size + j;
        sum = fma(broadcast(scores[t]), n == lanes ? load(v) : load(v, n), sum);
      }
      if (n == lanes) store(out + j, sum * inverse);
      else store(out + j, sum * inverse, n);
    }
  }
}

extern const AttentionKernels attention_kernels = {softmax, probabilities, scores_backward, store_page, paged};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
