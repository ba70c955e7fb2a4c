// Launchers of the kernels that core/kernels specifies, under the same names. Pointers are device memory; work is
// queued on `stream`; launch errors throw, execution errors are reported at the next synchronisation.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/clipped_surrogate.h"
#include "core/kernels/token_log_probs.h"
#include "core/tensor.h"

namespace gigpo::cuda {

// logits [rows][vocab], tokens [rows] -> log_probs [rows], entropies [rows] (may be null).
void token_log_probs(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                     float* log_probs, float* entropies, cudaStream_t stream);
void token_log_probs(int64_t rows, int64_t vocab, const __nv_bfloat16* logits, const int32_t* tokens,
                     double temperature, float* log_probs, float* entropies, cudaStream_t stream);

// logits [rows][vocab] -> d loss / d logits in place; inputs, results [rows]. A bf16 gradient of fp32 logits starts, in
// each row, where the logits did: its stride is 2 vocab. The number of blocks is limited to what so many
// `multiprocessors` hold (0: all), to leave the rest to other kernels; results are bit-identical.
void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, Type gradient, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream, int multiprocessors = 0);
void policy_head_chunk(int64_t rows, int64_t vocab, __nv_bfloat16* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream, int multiprocessors = 0);

// Stages before and after the head for tokens other than the sampled ones; logits [rows][vocab] without gaps. In
// between `others.log_probs` holds the differences l_i. The second stage computes either log-probabilities (scoring) or
// gradients.
void relate_head_tokens(Tensor logits, const PolicyHeadRow* inputs, double temperature, const HeadTokens& others, cudaStream_t stream);
void tell_head_tokens(int64_t rows, const PolicyHeadResult* results, const HeadTokens& others, cudaStream_t stream);
void head_token_gradients(Tensor gradients, const PolicyHeadRow* inputs, const PolicyHeadOptions& options, const PolicyHeadResult* results,
                          const HeadTokens& others, cudaStream_t stream);

// The pointers in `input` are device memory, as is `report`; `gradient` [tokens] may be null. The row lengths must be
// correct: only host-side arguments are checked. The workspace has this many bytes, aligned to 8.
size_t clipped_surrogate_workspace(int64_t rows);
void clipped_surrogate(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options, float* gradient,
                       ClippedSurrogateReport* report, void* workspace, cudaStream_t stream);

// tasks [count], offsets [count + 1] into bytes -> groups [count], *group_count. `bytes` must be readable from the
// multiple of 4 at or before its first byte to the one behind its last. The workspace has this many bytes, aligned to
// 16. Tests pass a `hash_mask` to force collisions.
size_t anchor_groups_workspace(int32_t count);
void group_anchors(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets, int32_t* groups,
                   int32_t* group_count, void* workspace, cudaStream_t stream, uint64_t hash_mask = ~uint64_t{0});

}  // namespace gigpo::cuda
