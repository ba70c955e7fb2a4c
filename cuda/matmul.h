// C = factor · op(A) · op(B) + bias + added: the product that every layer is made of. These are the kernels of this program; they
// take every shape, stride and alignment. cuda/cublaslt.h offers the same product from NVIDIA's library, where there is one.
#pragma once
#include <cuda_runtime_api.h>

#include "core/tensor.h"

namespace gigpo::cuda {

// Row-major views; op transposes when its flag is set, so op(A) is [m][k] and op(B) [k][n].
struct Matmul {
  Tensor a;
  bool transpose_a = false;
  Tensor b;  // of A's type
  bool transpose_b = false;
  Tensor bias;   // [1][n] of A's type, on every row; or empty
  Tensor added;  // [m][n] of C's type: C itself to accumulate, or another matrix; or empty
  Tensor c;      // f32, or bf16 where A is bf16; overlaps none but `added`, and that only when they are the same
  float factor = 1;
  int multiprocessors = 0;  // that it may take; 0: all. Blocks that soon make room for others need not be told

  int64_t m() const { return c.rows; }
  int64_t n() const { return c.columns; }
  int64_t k() const { return transpose_a ? a.rows : a.columns; }
};

// The shapes of work of a block (cuda/matmul.cu). Tests and the benchmark name one; `chosen` is right for everyone else.
enum class MatmulTile { chosen, rows_16, rows_32, rows_64, rows_128, square, wide, any };

// All sums are fp32. Without transposes, or with B's alone, a row of C has the same bits whatever m is and wherever the row
// stands: what a token's state becomes does not depend on the batch that it is in. With A transposed (the gradient of a
// weight) it has the same bits every time.
// The workspace (of any size, also none: then it takes longer) is free again when the stream has passed the product. bf16.
void matmul(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream,
            MatmulTile tile = MatmulTile::chosen);

// What it comes to for f32 operands: no tensor cores.
void matmul_f32(const Matmul& product, cudaStream_t stream);

}  // namespace gigpo::cuda
