// Launchers of the operations on rows: norms, rotary embedding, gated units, gathers, AdamW, sampling, as specified in core/device.h. All pointers
// are device memory. The tensors of a call are all f32 or all bf16 unless stated otherwise; sums are in fp32. The size of a workspace in
// bytes is returned by its function; a workspace is aligned to 16 bytes and holds nothing between calls. Work is queued on the stream; a
// failed launch throws.
#pragma once
#include <cuda_runtime_api.h>

#include "core/device.h"

namespace gigpo::cuda {

// `x` and `out` may be the same tensor, and so may `added` and `out`; `scales` may be null, and `added` empty.
void rms_norm(Tensor x, NormWeight weight, int64_t groups, float epsilon, Tensor out, float* scales, cudaStream_t stream,
              Tensor added = {});
// d_weight is f32 and is added to; empty if the weight is frozen. d_x may be d_out itself.
size_t rms_norm_backward_workspace(int64_t rows, int64_t columns, int64_t groups);
void rms_norm_backward(Tensor d_out, Tensor x, NormWeight weight, int64_t groups, const float* scales, Tensor d_x,
                       bool accumulate, Tensor d_weight, void* workspace, cudaStream_t stream);

void rotate(Tensor x, int64_t head_size, const Rotary& rotary, bool inverse, cudaStream_t stream);

void gated_unit(Tensor gate_up, Gate f, Tensor out, cudaStream_t stream);
// d_gate_up may be gate_up itself.
void gated_unit_backward(Tensor d_out, Tensor gate_up, Gate f, Tensor d_gate_up, cudaStream_t stream);

// x *= factor
void scale(Tensor x, float factor, cudaStream_t stream);
// to[i] = from[indices[i]], where an index of -1 - j is found at later[j].
void gather(const int32_t* indices, Tensor from, Tensor to, const int32_t* later, cudaStream_t stream);
// to[targets[i]] += Σ from[sources[j]], j in [offsets[i], offsets[i + 1]), in that order, for each of `count` different
// targets. `to` is f32 or of the type of `from`.
void scatter_add(const int32_t* targets, const int32_t* offsets, const int32_t* sources, int64_t count, Tensor from,
                 Tensor to, cudaStream_t stream);
// Copies and converts if the types differ; rounds to bf16 to nearest, ties to even.
void copy(Tensor from, Tensor to, cudaStream_t stream);

// d_bias (f32) += Σ_t d_y[t]
size_t bias_backward_workspace(int64_t rows, int64_t columns);
void bias_backward(Tensor d_y, Tensor d_bias, void* workspace, cudaStream_t stream);
// to (f32) += Σ_t factors[t] · x[t]; uses the same workspace.
void add_weighted_rows(Tensor x, const float* factors, Tensor to, void* workspace, cudaStream_t stream);
// to[c] += Σ_p parts[p][c]: the second stage of sums over rows.
void add_column_sums(const float* parts, int64_t count, int64_t columns, float* to, cudaStream_t stream);

// *result = Σ x², in double, in an order that depends only on `count`.
size_t squared_norm_workspace(int64_t count);
void squared_norm(const float* x, int64_t count, double* result, void* workspace, cudaStream_t stream);

// Moments in bf16 are rounded stochastically (core/kernels/moments.h), by `step.rounding` and the index of the weight
// in the model, however the calls are split. The `compute` copy is bf16.
void adamw(const AdamWBuffers& buffers, const AdamW& step, cudaStream_t stream);

// Critic head (core/kernels/value_loss.h): d_hidden has the type of `hidden`; d_weight is f32 and is added to.
size_t value_head_workspace(int64_t rows, int64_t columns);
void value_head(Tensor hidden, Tensor weight, const ValueHeadRow* inputs, const ValueHeadOptions& options, ValueHeadResult* results,
                Tensor d_hidden, Tensor d_weight, void* workspace, cudaStream_t stream);

// Samples one token per row, with its log-probability and the entropy of the sampling distribution.
void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs, float* entropies, cudaStream_t stream);
void mask_logits(Tensor logits, const LogitMasks& masks, cudaStream_t stream);
void hellinger(Tensor logits, Tensor others, double temperature, float* distances, cudaStream_t stream);
void top_tokens(Tensor logits, const SampleInputs& inputs, int64_t most, int32_t* tokens, float* log_probs, cudaStream_t stream);

}  // namespace gigpo::cuda
