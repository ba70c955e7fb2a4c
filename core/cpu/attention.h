// Attention on the CPU, in fp32: Device::attention, its backward pass and Device::paged_attention. bf16 inputs are converted to fp32 block by
// block, and results are rounded to bf16. The paged KV cache in bf16 has separate kernels.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/device.h"

namespace gigpo::cpu {

// Function that calls `attend` for parts of `blocks` blocks. A block has at most query_block queries of one head and at most `longest` keys.
using AttentionParts = std::function<void(int64_t blocks, int64_t longest, const std::function<void(int64_t first, int64_t count)>& attend)>;
void attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out, float* log_sums,
               const AttentionParts& in_parts);
void attention_backward(ThreadPool& pool, Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums, int64_t head_size,
                        const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v);
void paged_attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                     Tensor out);

// Maximum scratch memory of attention in bytes: per thread the scores and, in bf16, the converted blocks and the sums of the gradients of
// keys and values.
int64_t attention_bytes(const AttentionSizes& sizes, Type type, int threads);

}  // namespace gigpo::cpu
