// Attention on the card. A packed batch of T tokens, for training:
//   out_q = Σ_k p_qk v_k,  p_qk = exp(q·k / √D) / Σ_k' exp(q·k' / √D)  over the keys k that q sees,
// and a paged cache of running sequences, for generation. Matrices are row-major views [T][heads · D] (keys and values
// [T][kv heads · D]), all of one type; query head h reads key head h · kv_heads / heads. Pointers are device memory; the
// work is queued on `stream`. bf16 with 16, 32, 64 or 128 numbers a head runs on the tensor cores, provided that rows start
// at multiples of 16 bytes; everything else, up to 256 a head, takes a plain path.
#pragma once
#include <cuda_runtime_api.h>

#include "core/device.h"

namespace gigpo::cuda {

using VisibleTokens = PackedRows;

// `log_sums` [T][heads] receives log Σ exp(q·k / √D), which the backward pass needs.
void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const VisibleTokens& visible, Tensor out, float* log_sums,
               cudaStream_t stream);

// Writes d_q, d_k, d_v. Each is summed by one kernel in one order: the same inputs give the same bits.
size_t attention_backward_workspace(int64_t tokens, int64_t heads);
void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums, int64_t head_size,
                        const VisibleTokens& visible, Tensor d_q, Tensor d_k, Tensor d_v, void* workspace,
                        cudaStream_t stream);

// What new tokens bring to attention over pages, in one kernel: their keys and values are stored in their pages, keys and queries
// (those in place) transformed before, with the roundings that rms_norm and rotate would make one by one. Row p of the cache's
// tensors is a page, [kv head][PagedCache::page_size][D] for keys and for values alike: what a block reads at a time lies together,
// in the form that the tensor cores take. Heads are of even size; a transform without rotary tables turns nothing.
void store_heads(Tensor q, Tensor k, Tensor v, int64_t head_size, const HeadTransform& heads, const PagedBatch& batch,
                 const PagedCache& cache, cudaStream_t stream);

// Attends from each new token to all of its sequence up to itself, whose keys and values are in the pages.
//
// Rows of one sequence stand together, at consecutive positions. A token with sequences[t] < 0 is padding: it writes no
// page, and its output is zeros. A token's bits depend on its sequence and position alone, not on what else is in the
// batch or how much of its sequence comes with it. Positions and sequences are read on the device only: a CUDA graph of
// this call serves every batch of as many tokens. `workspace` may be null where none is asked for; `counters` are zeros, and are
// again when the call has run.
constexpr int64_t paged_attention_counters = 4 * 132;
size_t paged_attention_workspace(int64_t tokens, int64_t heads, int64_t kv_heads, int64_t head_size, int64_t table_stride);
void paged_attention(Tensor q, int64_t kv_heads, int64_t head_size, const PagedBatch& batch, const PagedCache& cache, Tensor out,
                     void* workspace, unsigned* counters, cudaStream_t stream);

}  // namespace gigpo::cuda
