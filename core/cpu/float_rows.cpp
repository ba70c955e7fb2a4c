#include "core/cpu/float_rows.h"

#include "core/cpu/kernels_bf16.h"
#include "core/cpu/matmul.h"

namespace gigpo::cpu {
namespace {

// Thread-local stack of buffers of the FloatRows alive on this thread: last in, first out.
struct Memory {
  std::vector<AlignedFloats> pieces;
  size_t used = 0;
};
thread_local Memory memory;

template <class Body>
void each(ThreadPool* pool, int64_t rows, Body body) {
  if (pool) return pool->parallel_for(rows, body);
  for (int64_t r = 0; r < rows; r++) body(r);
}

uint16_t* halves(Tensor x, int64_t row) { return x.halves() + row * x.stride; }

}  // namespace

void FloatRows::take() {
  stride = (rows_.columns + 15) / 16 * 16;
  if (memory.used == memory.pieces.size()) memory.pieces.emplace_back();
  data = memory.pieces[memory.used].reserve(size_t(rows_.rows * stride));
  memory.used++;
  if (access_ == Access::write) return;
  each(pool_, rows_.rows, [&](int64_t r) { bf16_kernels(isa()).widen(rows_.columns, halves(rows_, r), data + r * stride); });
}

void FloatRows::give_back() {
  memory.used--;
  if (access_ == Access::read) return;
  each(pool_, rows_.rows, [&](int64_t r) { bf16_kernels(isa()).round(rows_.columns, data + r * stride, halves(rows_, r)); });
}

}  // namespace gigpo::cpu
