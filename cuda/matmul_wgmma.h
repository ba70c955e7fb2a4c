// The same product for Hopper (sm_90), with wgmma and TMA: what trains at the speed of NVIDIA's library where that is not
// installed.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// Why not to use it on the current device: another architecture, a build without it, or products that come out wrong. Else "".
std::string why_no_wgmma();

// Whether cuda/matmul.h would take longer: products of many rows and columns.
bool wgmma_pays(const Matmul& product);

// False where TMA cannot read A or B (strides or addresses that are no multiples of 16 bytes), for fp32, for no k at all, and
// for both transposed: then nothing has been written. All sums are fp32, in an order that depends on the shape alone.
// The workspace is as in cuda/matmul.h. Only on a Hopper, in a build
// for one (why_no_wgmma). Tests name the columns of a tile: 256, 192 or 128.
bool matmul_wgmma(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream, int columns = 0);

// gate_up = X · Wᵀ, and SwiGLU of it, which then need not be read again: the same bits, but for the sign of zero, as one after the other. False, with
// nothing written, where the product alone would be left, and where the output is not bf16.
bool matmul_wgmma_swiglu(Tensor x, Tensor weight, Tensor gate_up, Tensor activated, cudaStream_t stream);

}  // namespace gigpo::cuda
