// Rows of a matrix as floats during an operation in fp32. Rows of an f32 matrix are used in place. Rows of a bf16 matrix are converted in
// thread-local memory: to fp32 at the start if they are read, rounded to bf16 at the end if they were written.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/tensor.h"

namespace gigpo::cpu {

enum class Access { read, write, both };

class FloatRows {
 public:
  FloatRows(Tensor x, int64_t first, int64_t count, Access access) : FloatRows(x.row_range(first, count), access) {}
  // Uses all rows, converted by all threads of `pool` if given.
  FloatRows(Tensor rows, Access access, ThreadPool* pool = nullptr) : rows_(rows), access_(access), pool_(pool) {
    if (rows.type == Type::bf16) take();
    else data = rows.floats(), stride = rows.stride;
  }
  ~FloatRows() {
    if (rows_.type == Type::bf16) give_back();
  }
  FloatRows(const FloatRows&) = delete;
  FloatRows& operator=(const FloatRows&) = delete;

  Tensor tensor() const { return {data, Type::f32, rows_.rows, rows_.columns, stride}; }

  float* data;
  int64_t stride;

 private:
  void take();
  void give_back();

  Tensor rows_;
  Access access_;
  ThreadPool* pool_;
};

}  // namespace gigpo::cpu
