// What a device offers: memory and the operations that the transformer, the losses and the sampler are made of.
// core/cpu implements them in plain C++ (the specification), cuda/ as kernels. Matrices are row-major views; T counts
// tokens of a packed batch, H is the hidden size, D the size of a head. Operations run in the order they are issued;
// `download` waits for those before it.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/token_log_probs.h"
#include "core/kernels/value_loss.h"
#include "core/random.h"
#include "core/quantized.h"
#include "core/tensor.h"

namespace gigpo {

// Who sees whom in a packed batch of T tokens: trees of token sequences, one after the other, each written depth first. A token
// sees its ancestors and itself, which `sees` says of a query and a key. Device memory.
struct PackedRows {
  const int32_t* starts;  // [T]: the first token of its tree. No end is past its tree's: this hides nothing, but tells where to begin
  const int32_t* ends;    // [T]: behind the last token that sees it, which is the last of its subtree

  template <class Index>
  static GIGPO_HOST_DEVICE constexpr bool sees(Index query, Index key, Index end_of_key) {
    return key <= query && query < end_of_key;
  }
};

// Rows that are added up: to[targets[i]] += Σ from[sources[j]] for j in [offsets[i], offsets[i + 1]), in this order, so that the
// sum does not depend on timing. No target occurs twice. Device memory.
struct RowScatter {
  const int32_t* targets;  // [count]
  const int32_t* offsets;  // [count + 1]
  const int32_t* sources;
  int64_t count;
};

// Rotary embedding: token t, pair j is rotated by positions[t] × frequencies[j].
struct Rotary {
  const int32_t* positions;    // device, [T]
  const float* cosine;         // device, [max position][D / 2]
  const float* sine;
};

// Keys and values of running sequences, in pages of `page_size` tokens. One layer's store; a row is a page, [kv head][page_size
// × D], and how it is laid out is the device's affair.
struct PagedCache {
  static constexpr int64_t page_size = 16;
  Tensor keys, values;
};

// Which sequence each of the T new tokens belongs to, and where it stands in it. Tokens of one sequence stand together.
struct PagedBatch {
  const int32_t* positions;    // device, [T]
  const int32_t* sequences;    // device, [T]; -1: the token fills the batch up, is not stored and sees nothing
  const int32_t* page_tables;  // device, [sequences][table_stride]: page of every page_size tokens
  int64_t table_stride;
};

// What becomes of the heads of new tokens before attention over pages.
struct HeadTransform {
  Tensor query_norm, key_norm;  // [1][D]: each head is normalised; both are empty where none is
  float epsilon = 0;
  Rotary rotary = {};           // of queries and keys, then
};

// Device memory.
struct SampleInputs {
  const float* temperatures;       // [rows]; 0 takes the most likely token
  const Key* keys;                 // [rows]
  const int32_t* token_indices;    // [rows]: which token of its completion is drawn; the generator's counter
  const int32_t* top;              // [rows]: of how many likeliest tokens is to be told
};

// What may be drawn in some rows of logits. Device memory.
struct LogitMasks {
  const int32_t* rows;    // [count]
  const uint32_t* words;  // [count][words_per_row]: bit v % 32 of word v / 32 says whether token v may be
  int64_t count, words_per_row;
};
constexpr float masked_logit = -1e30f;
// Of a logit, also where it was rounded: whether its token may be.
GIGPO_HOST_DEVICE constexpr bool is_possible(float logit) { return logit > masked_logit / 2; }

struct AdamW {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float gradient_scale;            // multiplies every gradient first: clipping by norm
  float correction1, correction2;  // 1 - beta^step
  Key rounding;                    // of bf16 moments, at random: the same for one step's calls
};

// Where the weights of one AdamW call lie, their gradients and moments. `index` counts from the first weight of the model.
struct AdamWBuffers {
  float* weights;
  void* compute;  // the form that the device computes with, written as well; null where that is `weights`
  const float* gradients;
  void *first_moment, *second_moment;
  Type moments;
  int64_t index, count;
};

// Of attention, trained and sampled.
struct AttentionSizes {
  int64_t head_size, key_columns;
  int64_t tokens;     // that are trained together; 0: none are
  int64_t positions;  // of the longest sequence
};

// What sizes depend on, known without opening the device.
struct DeviceTraits {
  Type activation_type;
  int64_t head_logits;  // that one pass of the head should make at a time
  int64_t step_tokens;  // that one step of sampling should compute at most
  int64_t sequences;    // that are usually sampled at once
  bool one_region;      // memory is scarce: sampling's cache and training's activations should take turns
  bool equal_chunks;    // a short last chunk of the head would leave it less busy than the others
  // Of a weight [rows][columns] in a form of the device's own, which `linear` keeps beside it; null: it keeps none.
  int64_t (*kept_bytes)(int64_t rows, int64_t columns) = nullptr;
  // What the device computes attention in, of its own; null: nothing worth planning for.
  int64_t (*attention_bytes)(const AttentionSizes& sizes, Type type, int threads) = nullptr;
  int threads = 1;  // for that
  // Operations are queued and run while the host goes on, which should then queue a step of sampling before it reads the last one's.
  bool asynchronous = false;
  int64_t shared_tokens = 8;  // that a step of sampling computes in little more time than one
  int lanes = 1;  // passes of the head that are under way at once: one's losses beside products of the others

  // The same, in rows. A table's gradient is one sum for each `head_unit` rows in order (core/cpu/matmul.h's k_block), and a chunk is
  // a whole number of these, so that, without `equal_chunks`, the bits do not tell how many rows one pass had. Fewer would not do: each pass goes
  // through the table twice and its gradient once, so that with 16 rows of Qwen's vocabulary a row took three times as long.
  static constexpr int64_t head_unit = 512;
  int64_t head_rows(int64_t vocabulary) const { return std::max<int64_t>(head_logits / vocabulary / head_unit, 1) * head_unit; }
  // How many of `rows` rows each pass of the head should take.
  int64_t head_chunk(int64_t rows, int64_t vocabulary) const {
    const int64_t most = head_rows(vocabulary), passes = equal_chunks ? (rows + most - 1) / most : 0;
    return passes > 0 ? (rows + passes - 1) / passes : std::min(rows, most);
  }
};

class Device {
 public:
  virtual ~Device() = default;

  // Memory. Allocation throws Error OUT_OF_MEMORY. `upload` and `download` may be called with any host memory; uploads have
  // read it when they return, downloads have written it.
  virtual DeviceTraits traits() const = 0;
  Type activation_type() const { return traits().activation_type; }
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data) = 0;
  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  // A download that the host comes back for: what is returned waits for it, but not for what was queued since, and then `host` has
  // been written. Two may be under way; one that nobody waits for writes nothing.
  virtual std::function<void()> fetch(void* host, const void* device, size_t bytes) {
    download(host, device, bytes);
    return [] {};
  }
  // `to` is [1][n] of fp32: n numbers, stored as `type` in host memory, which has been read when it returns.
  virtual void upload_floats(Tensor to, const std::byte* host, Stored type) {
    if (type == Stored::f32) return upload(to.data, host, to.columns * sizeof(float));
    std::vector<float> floats(to.columns);
    dequantize(host, type, to.columns, floats.data());
    upload(to.data, floats.data(), floats.size() * sizeof(float));
  }
  virtual void zero(void* data, size_t bytes) = 0;
  // Converts where the types differ.
  virtual void copy(Tensor from, Tensor to) = 0;
  // Runs operations that sample: a row of them has the same bits whatever other rows there are, also where a device has something
  // faster that does not promise it.
  virtual void batch_invariant(const std::function<void()>& operations) { operations(); }
  // Whether it keeps to that.
  virtual bool deterministic() const { return true; }
  // Called between the operations of a score, and between parts of long ones: it may compute something else on the device, in memory of its
  // own. Returns whether others wait for the device, so that operations must be short. What it throws ends the score.
  void set_between(std::function<bool()> between) {
    between_ = std::move(between);
    shared_ = false;
  }
  void pause() {
    if (!between_) return;
    std::function<bool()> between = std::exchange(between_, nullptr);  // what it computes is not interrupted in turn
    shared_ = false;
    shared_ = between();
    between_ = std::move(between);
  }
  // Computes `rows` rows of so many multiplications each, in parts with a pause behind each while others wait; else all at once.
  template <class Compute>
  void in_parts(int64_t rows, int64_t multiplications, const Compute& compute) {
    for (int64_t first = 0, count; first < rows; first += count) {
      const int64_t most = std::max<int64_t>(part_multiplications() / std::max<int64_t>(multiplications, 1) / part_rows, 1) * part_rows;
      count = shared_ ? std::min(rows - first, most) : rows - first;
      compute(first, count);
      pause();
    }
  }
  // Bytes that `allocate` could still give.
  virtual size_t available() const = 0;
  // Why products do without the matrix library that the device could use; empty where they do not, or there is none for it.
  virtual std::string without_library() const { return {}; }

  // Runs `operations`, or repeats what they queued when this key was last given: they must be the same ones on the same
  // addresses, and touch no host memory.
  using ReplayKey = std::array<uint64_t, 4>;
  virtual void replay(const ReplayKey& /*key*/, const std::function<void()>& operations) { operations(); }
  // How many tokens to pass where `tokens` are to be computed again and again: more, where that makes equal batches.
  virtual int64_t replay_size(int64_t tokens) const { return tokens; }

  // C (+)= factor · op(A) · op(B), where op transposes when its flag is set. C may be f32 where A and B are bf16. There is a factor only
  // where nothing else is added, here and in `linear`.
  virtual void matmul(Tensor a, bool transpose_a, Tensor b, bool transpose_b, Tensor c, bool accumulate, float factor = 1) = 0;
  // Y = factor · X · Wᵀ + b + A, with W [out][in] as Hugging Face stores it; `bias` and `added` may be empty, and `added` may be Y itself.
  // Y may be f32 where X and W are bf16. The device may keep W in a form of its own until `weights_changed` names memory that it
  // lies in.
  virtual void linear(Tensor x, Tensor weight, Tensor bias, Tensor added, Tensor y, float factor = 1) = 0;
  virtual void weights_changed(Tensor written) = 0;
  // db[n] += Σ_t dY[t][n]
  virtual void bias_backward(Tensor d_y, Tensor d_bias) = 0;

  // to[i] = from[indices[i]], and its backward pass. Instead of an index that the host does not know yet stands -1 - j: it is found at
  // later[j]. `indices` and `later` are device memory.
  virtual void gather(const int32_t* indices, Tensor from, Tensor to, const int32_t* later = nullptr) = 0;
  virtual void scatter_add(const RowScatter& sums, Tensor from, Tensor to) = 0;

  // Within each row, each of `groups` equal groups of columns is normalised on its own (a group is the whole row, or one
  // head): out = w ⊙ x · s with s = (mean x² + ε)^(-1/2). `scales` [rows][groups] keeps s for the backward pass, which adds
  // to d_x (or writes it) and adds to d_w, unless that is empty.
  virtual void rms_norm(Tensor x, Tensor weight, int64_t groups, float epsilon, Tensor out, float* scales) = 0;
  virtual void rms_norm_backward(Tensor d_out, Tensor x, Tensor weight, int64_t groups, const float* scales, Tensor d_x,
                                 bool accumulate, Tensor d_weight) = 0;

  // Rotates each head of x in place, halves paired as Llama does: (x_j, x_{j + D/2}). `inverse` is the backward pass.
  virtual void rotate(Tensor x, int64_t head_size, const Rotary& rotary, bool inverse) = 0;

  // Softmax attention of each token to those that it sees; heads / kv_heads query heads share a key head. `log_sums` [T][heads] keeps
  // log Σ exp(scores) for the backward pass, which writes d_q, d_k, d_v.
  virtual void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out,
                         float* log_sums) = 0;
  virtual void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                                  int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) = 0;
  // Writes the new tokens' keys and values into their pages, then attends from each to all of its sequence up to itself.
  virtual void paged_attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                               const PagedCache& cache, Tensor out) = 0;
  // The same of a projection [T][queries, keys, values] whose heads are transformed first; what is left of it is the device's affair.
  virtual void paged_attention(Tensor qkv, int64_t head_size, const HeadTransform& heads, const PagedBatch& batch,
                               const PagedCache& cache, Tensor out) {
    const int64_t q = out.columns, kv = (qkv.columns - q) / 2;
    const Tensor queries = qkv.column_range(0, q), keys = qkv.column_range(q, kv), values = qkv.column_range(q + kv, kv);
    if (heads.query_norm) {
      rms_norm(queries, heads.query_norm, q / head_size, heads.epsilon, queries, nullptr);
      rms_norm(keys, heads.key_norm, kv / head_size, heads.epsilon, keys, nullptr);
    }
    rotate(qkv.column_range(0, q + kv), head_size, heads.rotary, false);
    paged_attention(queries, keys, values, head_size, batch, cache, out);
  }

  // gate_up [T][2I]: out = silu(gate) ⊙ up
  virtual void swiglu(Tensor gate_up, Tensor out) = 0;
  virtual void swiglu_backward(Tensor d_out, Tensor gate_up, Tensor d_gate_up) = 0;
  // gate_up = X · Wᵀ and its swiglu, for devices that need not read it again.
  virtual void linear_swiglu(Tensor x, Tensor weight, Tensor gate_up, Tensor out) {
    linear(x, weight, {}, {}, gate_up);
    swiglu(gate_up, out);
  }

  // The losses, in place on a chunk of logits (core/kernels/token_log_probs.h), which become their gradient: see gradient_of_logits.
  // Arrays [rows] are device memory.
  virtual void policy_head(Tensor logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                           PolicyHeadResult* results, HeadTokens others = {}) = 0;
  // The same, which may run beside what is issued until this lane is joined: products of so many multiplications altogether, none of
  // which touches what it does. No lane is taken twice before it is joined.
  virtual void policy_head_beside(int /*lane*/, double /*multiplications*/, Tensor logits, const PolicyHeadRow* inputs,
                                  const PolicyHeadOptions& options, PolicyHeadResult* results, HeadTokens others = {}) {
    policy_head(logits, inputs, options, results, others);
  }
  virtual void join(int /*lane*/) {}
  // Where that lies: of the activation type, each row where its logits began.
  Tensor gradient_of_logits(Tensor logits) const {
    const Type type = activation_type();
    return {logits.data, type, logits.rows, logits.columns, logits.stride * bytes_of(logits.type) / bytes_of(type)};
  }
  // Of the distributions of each row at this temperature, those of `logits` and of `others` (core/kernels/hellinger.h). `distances`:
  // device memory, [rows].
  virtual void hellinger(Tensor logits, Tensor others, double temperature, float* distances) = 0;
  // A critic's head on hidden states [rows][H] (core/kernels/value_loss.h): value = hidden · weight, in fp32 or better
  // whatever the weights are stored in. Where it trains, d_hidden is written and d_weight added to; else both are empty. Arrays [rows] are device
  // memory.
  virtual void value_head(Tensor hidden, Tensor weight, const ValueHeadRow* inputs, const ValueHeadOptions& options,
                          ValueHeadResult* results, Tensor d_hidden, Tensor d_weight) = 0;
  // Gives the tokens that a mask leaves out the logit `masked_logit`: then their probability is 0 in whatever follows, and so is its
  // product with it, which -∞ would not give.
  virtual void mask_logits(Tensor logits, const LogitMasks& masks) = 0;
  // One token a row by Gumbel-max; from the same pass its log-probability, and the entropy in nats of what it was drawn from (at temperature
  // 0: of that at 1, as the log-probability). `tokens`, `log_probs`, `entropies`: device memory, [rows].
  virtual void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs, float* entropies) = 0;
  // The likeliest tokens of the distribution that is sampled from (core/kernels/top_tokens.h): inputs.top[row] of them in row `row` of
  // `tokens` and `log_probs`, device memory, [rows][most]. The others are left as they are.
  virtual void top_tokens(Tensor logits, const SampleInputs& inputs, int64_t most, int32_t* tokens, float* log_probs) = 0;

  // Σ x² over `count` floats, in double, in a fixed order.
  virtual double squared_norm(const float* x, int64_t count) = 0;
  virtual void adamw(const AdamWBuffers& buffers, const AdamW& step) = 0;

 protected:
  // Rows of a part are a multiple of these, which keeps products fast.
  static constexpr int64_t part_rows = 64;

 private:
  // Of one part of a long operation: some 10 ms.
  virtual int64_t part_multiplications() const { return int64_t{1} << 29; }

  std::function<bool()> between_;
  bool shared_ = false;
};

// `precision` is of activations and of the weights that are computed with.
// `threads` 0 uses every core that the process may.
DeviceTraits cpu_traits(Type precision, int threads = 0);
std::unique_ptr<Device> make_cpu_device(int threads, Type precision = Type::f32);

struct CudaOptions {
  Type precision = Type::bf16;  // as above
  bool graphs = true;           // steps of sampling are recorded and replayed
  bool cublas = true;           // cuBLASLt where it is found; else the kernels of this library alone
  bool cublas_samples = false;  // it computes what is sampled too: then tokens may depend on what is sampled beside them
  // The head's losses run beside its products. Off until a card has measured it: it pays only where the losses' blocks lie on few
  // multiprocessors, which CUDA does not promise.
  bool two_streams = false;
  int64_t head_logits = 0;      // DeviceTraits', where tests want fewer
};
DeviceTraits cuda_traits(Type precision);
// Throws Error DEVICE_UNAVAILABLE with the reason where there is none.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options);

}  // namespace gigpo
