#include "test/core/vector_kernel.h"

#include "core/cpu/vector.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {
namespace {

int64_t some(int64_t left) { return left < lanes ? left : lanes; }

template <Vec (*function)(Vec)>
void all(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += lanes) store(y + i, function(load(x + i, some(count - i))), some(count - i));
}

void max_of(const float* x, const float* y, float* out) { store(out, max(load(x), load(y))); }
void min_of(const float* x, const float* y, float* out) { store(out, min(load(x), load(y))); }
float sum_of(const float* x) { return sum(load(x)); }
float max_across(const float* x) { return max(load(x)); }
void copy(const float* from, float* to, int64_t count) { store(to, load(from, count), count); }
void load_some(const float* from, float* to, int64_t count) { store(to, load(from, count)); }

void transpose_of(const float* from, float* to) {
  Vec rows[lanes];
  for (int i = 0; i < lanes; i++) rows[i] = load(from + i * lanes);
  transpose(rows);
  for (int i = 0; i < lanes; i++) store(to + i * lanes, rows[i]);
}

}  // namespace

extern const VectorKernel vector_kernel = {lanes,  all<exp>, all<log>, all<log_one_minus>, all<sqrt>, max_of,
                                           min_of, sum_of,   max_across, copy,              load_some, transpose_of};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
