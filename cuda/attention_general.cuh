// Attention of any type and head size up to 256, without the tensor cores: cuda/attention_general.cu. The launchers of
// cuda/attention.h come here for what their own kernels do not take.
#pragma once
#include "cuda/attention.h"

namespace gigpo::cuda::general {

constexpr int64_t largest_head = 256;

void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const VisibleTokens& visible, Tensor out, float* log_sums,
               cudaStream_t stream);

// deltas[t][head] = Σ dO ∘ O: what the softmax's normalisation takes from each score's gradient.
void attention_deltas(Tensor d_out, Tensor out, int64_t head_size, float* deltas, cudaStream_t stream);
void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, const float* log_sums, const float* deltas,
                        int64_t head_size, const VisibleTokens& visible, Tensor d_q, Tensor d_k, Tensor d_v,
                        cudaStream_t stream);

// After the new tokens have been stored.
void paged_attention(Tensor q, int64_t kv_heads, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                     Tensor out, cudaStream_t stream);

}  // namespace gigpo::cuda::general
