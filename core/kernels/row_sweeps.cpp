#include "core/kernels/row_sweeps.h"

#include "core/cpu/vector.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

constexpr float infinity = __builtin_inff();
constexpr int64_t block = 512;  // logits that are summed in float; sums of blocks are added in double

// Last logits of a row; lanes beyond the end are minus infinity.
GIGPO_INLINE Vec last_logits(const float* z, int64_t count) {
  return lane_index() < broadcast(int32_t(count)) ? load(z, count) : broadcast(-infinity);
}

// Runs body(vector of logits, offset, valid lanes) over [first, last).
template <class Body>
[[gnu::always_inline]] static inline void for_each_vec(int64_t first, int64_t last, const float* z, Body body) {
  int64_t j = first;
  for (; j + lanes <= last; j += lanes) body(load(z + j), j, int64_t{lanes});
  if (j < last) body(last_logits(z + j, last - j), j, last - j);
}

// Bounded from below to where e^x is already 0, so that a token of probability 0 gives e^x x = 0 instead of NaN.
// Preserves NaN.
GIGPO_INLINE Vec exponent(Vec z, Vec max_logit, Vec inverse_temperature) {
  return max(broadcast(-88.0f), (z - max_logit) * inverse_temperature);
}

static float row_max(int64_t vocab, const float* z) {
  Vec most[2] = {broadcast(-infinity), broadcast(-infinity)};
  int64_t j = 0;
  for (; j + 2 * lanes <= vocab; j += 2 * lanes) {
    most[0] = max(load(z + j), most[0]);
    most[1] = max(load(z + j + lanes), most[1]);
  }
  for_each_vec(j, vocab, z, [&](Vec v, int64_t, int64_t) { most[0] = max(v, most[0]); });
  return max(max(most[0], most[1]));
}

template <bool kept>
GIGPO_INLINE RowSums sums(int64_t vocab, const float* z, float max_logit, float inverse_temperature, float* keep) {
  RowSums total = {0, 0};
  for (int64_t first = 0; first < vocab; first += block) {
    Vec exponentials{}, weighted{};
    for_each_vec(first, first + block < vocab ? first + block : vocab, z, [&](Vec v, int64_t j, int64_t count) {
      const Vec x = exponent(v, broadcast(max_logit), broadcast(inverse_temperature)), e = exp(x);
      exponentials += e;
      weighted = fma(e, x, weighted);
      if (kept) store_some(keep + j, e, count);
    });
    total.exponentials += double(sum(exponentials));
    total.weighted += double(sum(weighted));
  }
  return total;
}

static RowSums row_sums(int64_t vocab, const float* z, float max_logit, float inverse_temperature, float* keep) {
  return keep ? sums<true>(vocab, z, max_logit, inverse_temperature, keep)
              : sums<false>(vocab, z, max_logit, inverse_temperature, nullptr);
}

static void scale(int64_t vocab, float* z, float factor) {
  for_each_vec(0, vocab, z, [&](Vec v, int64_t j, int64_t count) { store_some(z + j, v * broadcast(factor), count); });
}

static void linear(int64_t vocab, float* z, float max_logit, float inverse_temperature, float constant, float slope) {
  for_each_vec(0, vocab, z, [&](Vec v, int64_t j, int64_t count) {
    const Vec x = exponent(v, broadcast(max_logit), broadcast(inverse_temperature));
    store_some(z + j, exp(x) * fma(broadcast(slope), x, broadcast(constant)), count);
  });
}

GIGPO_INLINE Vec root(Vec z, RootScale scale, Vec half_inverse_temperature) {
  return exp(max(broadcast(-88.0f), (z - broadcast(scale.max)) * half_inverse_temperature - broadcast(scale.shift)));
}

static double root_distance(int64_t vocab, const float* z, RootScale of_z, const float* w, RootScale of_w, float inverse_temperature) {
  const Vec half = broadcast(0.5f * inverse_temperature);
  double total = 0;
  for (int64_t first = 0; first < vocab; first += block) {
    Vec squares{};
    for_each_vec(first, first + block < vocab ? first + block : vocab, z, [&](Vec v, int64_t j, int64_t count) {
      const Vec other = count == lanes ? load(w + j) : last_logits(w + j, count);
      const Vec difference = root(v, of_z, half) - root(other, of_w, half);
      squares = fma(difference, difference, squares);
    });
    total += double(sum(squares));
  }
  return total;
}

extern const RowSweeps row_sweeps = {row_max, row_sums, scale, linear, root_distance};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
