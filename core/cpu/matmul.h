// Matrix multiplication in fp32 on the CPU.
//
// Every element of a result is determined by its row, its column and k alone: over each block of `k_block` values of k,
// in order, one chain of fused multiply-adds from zero; these block sums are added in order (to C first when
// accumulating, with the bias at the end of the first). So results are bit-identical in any batch, with any number of
// threads, in all functions of this file, and on AVX2 and AVX-512, because only the order of operations matters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/cpu/thread_pool.h"

namespace gigpo::cpu {

constexpr int64_t k_block = 512;

// C[m][n] = op(A)[m][k] · op(B)[k][n] (+ C if accumulate) (+ bias[n] on every row, if not null). Row-major; ld* are the
// distances between stored rows, in floats. op transposes if its flag is set: A is then stored [k][m], B [n][k]. C must
// not overlap the others.
struct MatmulArguments {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  bool ta;
  const float* b;
  int64_t ldb;
  bool tb;
  float* c;
  int64_t ldc;
  bool accumulate;
  const float* bias;
};

void matmul(ThreadPool& pool, const MatmulArguments& arguments);

// Single-threaded version: for many small concurrent products, such as those of attention heads.
void matmul_single(const MatmulArguments& arguments);

// Array of floats on a 64-byte boundary; grows, never shrinks.
class AlignedFloats {
 public:
  // Returns at least `count` floats. Contents are lost when the array grows.
  float* reserve(size_t count);
  float* data() const { return data_.get(); }
  size_t bytes() const { return capacity_ * sizeof(float); }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
  size_t capacity_ = 0;
};

// Floats of a packed weight, whose rows are padded to whole panels.
int64_t packed_size(int64_t n, int64_t k);

// Weight stored [n][k] ([out][in]), packed for many products X[m][k] · Wᵀ of few rows, as in generation.
class PackedWeight {
 public:
  void pack(ThreadPool& pool, const float* w, int64_t n, int64_t k);
  float* data() const { return storage_.data(); }
  size_t bytes() const { return storage_.bytes(); }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }

 private:
  AlignedFloats storage_;
  int64_t n_ = 0, k_ = 0;
};

// Y[m][n] = X[m][k] · Wᵀ (+ Y if accumulate) (+ bias[n] if not null). W must have been packed under this isa().
void matmul_packed(ThreadPool& pool, int64_t m, const float* x, int64_t ldx, const PackedWeight& w, float* y,
                   int64_t ldy, const float* bias, bool accumulate);

}  // namespace gigpo::cpu
