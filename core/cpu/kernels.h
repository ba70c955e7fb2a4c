// Kernels of the CPU device, on plain pointers. kernels_*.cpp are compiled once per instruction set; each copy fills one table. A function
// processes a range of rows on the calling thread; device.cpp distributes ranges over the threads.
#pragma once
#include "core/cpu/isa.h"
#include "core/gate.h"
#include "core/kernels/moments.h"
#include "core/random.h"

namespace gigpo::cpu {

struct DrawnToken {
  int32_t token;
  float log_prob, entropy;  // NaN if the logits are NaN
};

struct ElementwiseKernels {
  // x, out [rows][groups × size] with strides; scales [rows][groups], may be null. Adds to `out` if `accumulate` is set. See Device::rms_norm.
  void (*rms_norm)(int64_t rows, int64_t groups, int64_t size, const float* x, int64_t x_stride, const float* weight, float offset,
                   float epsilon, float* out, int64_t out_stride, bool accumulate, float* scales);
  // Adds this range's part of d_weight to `d_weight`.
  void (*rms_norm_backward)(int64_t rows, int64_t groups, int64_t size, const float* d_out, int64_t d_out_stride,
                            const float* x, int64_t x_stride, const float* weight, float offset, const float* scales, float* d_x,
                            int64_t d_x_stride, bool accumulate, float* d_weight);
  void (*rotate)(int64_t rows, int64_t heads, int64_t head_size, float* x, int64_t stride, const int32_t* positions,
                 const float* cosine, const float* sine, bool inverse);
  void (*gated_unit)(Gate f, int64_t rows, int64_t size, const float* gate_up, int64_t stride, float* out, int64_t out_stride);
  void (*gated_unit_backward)(Gate f, int64_t rows, int64_t size, const float* d_out, int64_t d_out_stride, const float* gate_up,
                              int64_t stride, float* d_gate_up, int64_t d_stride);
  // to[i] += from[i]
  void (*add)(int64_t count, const float* from, float* to);
  double (*squared_norm)(int64_t count, const float* x);
  // See Device::adamw. `adamw_rounded` has moments in bf16; `index` is the index of the first weight in the model.
  void (*adamw)(int64_t count, float* weights, const float* gradients, float* first, float* second, const AdamWFactors& by);
  void (*adamw_rounded)(int64_t count, float* weights, const float* gradients, uint16_t* first, uint16_t* second,
                        const AdamWFactors& by, Key rounding, int64_t index);
  // Draws one token of logits [vocab]; `noise` is scratch [vocab + 64]. See Device::sample.
  DrawnToken (*sample)(int64_t vocab, const float* logits, float temperature, Key key, int32_t token_index, uint32_t* noise);
};

// Query head of one new token, which attends to the tokens [hidden, context) of its sequence.
struct PagedQuery {
  const float* query;  // [D]
  float* out;          // [D]
  int64_t hidden, context;
};

// Keys that consecutive queries are scored against, in order: all keys that the queries may see, or a part of these.
struct SeenKeys {
  int64_t columns;      // number of keys
  int64_t open;         // number of leading keys that are seen by every query not before them
  int64_t own;          // column of the first query's own key, possibly past the end; the keys of the other queries follow
  int32_t first_query;  // index of the first query in the batch
  const int32_t* ends;  // PackedRows::ends of the keys, [columns rounded up to 16]
  const int32_t* begins = nullptr;  // [queries] first column that the query's window shows, counted over all keys; null: no windows
  int64_t before = 0;               // number of columns of all keys before these
};

// Kernels of attention over KV cache pages of type T: float, or bf16 as uint16_t.
template <class T>
struct PagedKernels {
  // Stores keys and values of one head of one token in its page: keys [D][page], values [page][D].
  void (*store)(int64_t head_size, int64_t slot, const float* key, const float* value, T* keys, T* values);
  // Attention of queries of one sequence and one key head, with non-decreasing `hidden` and `context`. The keys of page p are at
  // keys + pages[p] · page_stride. `scores` is scratch [rows][longest context rounded up to the page].
  static constexpr int64_t rows = 8;
  void (*attend)(int64_t count, const PagedQuery* queries, int64_t head_size, const int32_t* pages, const T* keys,
                 const T* values, int64_t page_stride, float scale, float* scores);
};

struct AttentionKernels {
  // Softmax of scores [rows][stride] of consecutive queries with `keys`, in place: softmax(scale · scores) over the keys that each query
  // sees, 0 elsewhere. log_sums[i · log_stride] receives log Σ exp(scale · score).
  void (*softmax)(int64_t rows, const SeenKeys& keys, float* scores, int64_t stride, float scale, float* log_sums,
                  int64_t log_stride);
  // Recomputes the probabilities of `softmax` from scores and log_sums, in place.
  void (*probabilities)(int64_t rows, const SeenKeys& keys, float* scores, int64_t stride, float scale,
                        const float* log_sums, int64_t log_stride);
  // d_p [rows][stride] becomes d_scores = scale · p ⊙ (d_p - Σ d_out ⊙ out).
  void (*scores_backward)(int64_t rows, int64_t columns, int64_t head_size, const float* probabilities, float* d_p,
                          int64_t stride, const float* d_out, int64_t d_out_stride, const float* out,
                          int64_t out_stride, float scale);
  PagedKernels<float> paged;
  PagedKernels<uint16_t> paged_bf16;
};

GIGPO_KERNEL_TABLE(ElementwiseKernels, elementwise_kernels)
GIGPO_KERNEL_TABLE(AttentionKernels, attention_kernels)

}  // namespace gigpo::cpu
