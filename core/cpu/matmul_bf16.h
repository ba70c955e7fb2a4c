// Matrix multiplication of bf16 with fp32 sums on the CPU.
//
// Every element of a result is determined by its row, its column and k alone: over each block of `bf16_k_block` values
// of k, in order, one chain of sums from zero over pairs of products (AMX: over 16 pairs); these block sums are added in
// order (to C first when accumulating, with the bias at the end of the first), in fp32, and rounded once if C is bf16. So
// results are bit-identical in any batch, with any number of threads and in both functions of this file, but not on every
// processor: the instructions for bf16 (vdpbf16ps, tdpbf16ps, bfmmla) add the products of a pair in different orders, and
// flush subnormal numbers to 0.
#pragma once
#include "core/cpu/matmul.h"
#include "core/tensor.h"

namespace gigpo::cpu {

constexpr int64_t bf16_k_block = 8192;

// C = op(A) · op(B) (+ C if accumulate) (+ bias on every row, if not empty). C is f32 or bf16, the others are bf16. C
// must not overlap the others.
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

// Whether a weight [n][k] can be packed as words of two adjacent elements along k, for products of few rows. Requires
// an even k.
inline bool can_pack(Tensor weight) { return weight.columns % 2 == 0 && weight.stride == weight.columns; }
void pack(ThreadPool& pool, Tensor weight, PackedWeight& packed);

// Like matmul, where B is the packed weight, transposed.
void matmul_packed(ThreadPool& pool, const Bf16Matmul& product, const PackedWeight& weight);

}  // namespace gigpo::cpu
