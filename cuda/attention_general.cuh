// Attention for all types and head sizes up to 256, without tensor cores: cuda/attention_general.cu. Fallback of the launchers of
// cuda/attention.h for inputs that their own kernels do not support.
#pragma once
#include "cuda/attention.h"

namespace gigpo::cuda::general {

constexpr int64_t largest_head = 256;

void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const VisibleTokens& visible, Tensor out, float* log_sums,
               cudaStream_t stream);

// deltas[t][head] = Σ dO ∘ O: term of the softmax normalisation in the gradient of the scores.
void attention_deltas(Tensor d_out, Tensor out, int64_t head_size, float* deltas, cudaStream_t stream);
void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, const float* log_sums, const float* deltas,
                        int64_t head_size, const VisibleTokens& visible, Tensor d_q, Tensor d_k, Tensor d_v,
                        cudaStream_t stream);

// Paged attention; requires that the new tokens have been stored.
void paged_attention(Tensor q, int64_t kv_heads, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                     Tensor out, cudaStream_t stream);

}  // namespace gigpo::cuda::general
