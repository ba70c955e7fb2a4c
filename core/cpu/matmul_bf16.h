// Matrix multiplication of bf16 with fp32 sums on the CPU.
//
// Every element of a result is defined by its row, its column and k alone: over each block of `bf16_k_block` values of k, in
// order, one chain of sums over pairs of products from zero; these block sums are added in order (to C first when
// accumulating, with the bias at the end of the first), in fp32, and rounded once where C is bf16. So it has the same bits in
// any batch, at any number of threads and from both functions here; but not on every processor: vdpbf16ps adds a pair's
// products in an order of its own, and takes subnormal numbers for 0.
#pragma once
#include "core/cpu/matmul.h"
#include "core/tensor.h"

namespace gigpo::cpu {

constexpr int64_t bf16_k_block = 8192;

// C = op(A) · op(B) (+ C when accumulate) (+ bias on every row, when not empty). C is f32 or bf16, the others are bf16. C may
// overlap none of the others.
struct Bf16Matmul {
  Tensor a;
  bool transpose_a;
  Tensor b;
  bool transpose_b;
  Tensor c;
  bool accumulate;
  Tensor bias;
};

void matmul(ThreadPool& pool, const Bf16Matmul& product);

// A weight [n][k] laid out for products of few rows, as words of two neighbours along k. That cannot be done where k is odd.
inline bool can_pack(Tensor weight) { return weight.columns % 2 == 0 && weight.stride == weight.columns; }
void pack(ThreadPool& pool, Tensor weight, PackedWeight& packed);

// The same as matmul, where B is the weight that was packed, transposed.
void matmul_packed(ThreadPool& pool, const Bf16Matmul& product, const PackedWeight& weight);

}  // namespace gigpo::cpu
