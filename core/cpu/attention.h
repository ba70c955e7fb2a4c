// Attention on the CPU: Device::attention, its backward pass and Device::paged_attention, in fp32. What is bf16 is widened a
// block at a time and rounded after; the paged cache of bf16 has kernels of its own.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/device.h"

namespace gigpo::cpu {

// Has `attend` called with parts of so many blocks of at most query_block queries of one head, each of which sees at most `longest` keys.
using AttentionParts = std::function<void(int64_t blocks, int64_t longest, const std::function<void(int64_t first, int64_t count)>& attend)>;
void attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out, float* log_sums,
               const AttentionParts& in_parts);
void attention_backward(ThreadPool& pool, Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums, int64_t head_size,
                        const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v);
void paged_attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                     Tensor out);

// What these take at most: a thread its scores, and in bf16 the blocks that it has widened and the sums of the gradients of keys
// and values.
int64_t attention_bytes(const AttentionSizes& sizes, Type type, int threads);

}  // namespace gigpo::cpu
