// Matrix product for Hopper (sm_90), with wgmma and TMA: fast training without NVIDIA's library.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// Reason not to use it on the current device: another architecture, a build without it, or wrong products. Else "".
std::string why_no_wgmma();

// Whether cuda/matmul.h would be slower: products of many rows and columns.
bool wgmma_pays(const Matmul& product);

// Returns false, without writing, if TMA cannot read A or B (strides or addresses that are not multiples of 16 bytes),
// for fp32, for k = 0, and for both transposed. All sums are fp32, in an order that depends only on the shape. The
// workspace is as in cuda/matmul.h. Requires a Hopper GPU and a build for it (why_no_wgmma). Tests set the columns of a
// tile: 256, 192 or 128.
bool matmul_wgmma(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream, int columns = 0);

// gate_up = X · Wᵀ and its SwiGLU, without reading gate_up again. Same bits as the two operations one after another,
// except for the sign of zero. Returns false, without writing, if the product alone would be refused, and if the output
// is not bf16.
bool matmul_wgmma_swiglu(Tensor x, Tensor weight, Tensor gate_up, Tensor activated, cudaStream_t stream);

}  // namespace gigpo::cuda
