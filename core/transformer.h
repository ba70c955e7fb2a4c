// The decoder-only transformer of Qwen2, Qwen3 and Llama, written once over a Device:
//   x = embed(token);  x += attention(norm(x));  x += swiglu(norm(x));  hidden = norm(x)
// Forward and backward over packed rows for training, and over new tokens with a paged cache for generation.
#pragma once
#include <vector>

#include "core/arena.h"
#include "core/model.h"

namespace gigpo {

// Tokens of several rows, one after the other, without padding; see PackedRows.
struct PackedTokens {
  std::vector<int32_t> tokens, positions, branches, prefixes;
  std::vector<int32_t> offsets{0};
  std::vector<int32_t> wanted;  // which tokens' hidden states are asked for; they may repeat

  void add_row(const int32_t* prompt, int64_t length);
  // A reply to the last row's prompt.
  void add_branch(const int32_t* reply, int64_t length);
  int64_t size() const { return int64_t(tokens.size()); }
  PackedRows rows() const { return {offsets.data(), prefixes.data(), branches.data(), int64_t(prefixes.size())}; }

 private:
  void add(const int32_t* from, int64_t length, int32_t position, int32_t branch);
};

// New tokens of running sequences; see PagedBatch.
struct PagedTokens {
  std::vector<int32_t> tokens, positions, sequences, page_tables;
  int64_t table_stride = 0;
  std::vector<int32_t> wanted;  // which tokens' hidden states are asked for
};

class Transformer {
 public:
  Transformer(Device& device, const ModelConfig& config);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  const ModelLayout& layout() const { return layout_; }

  // Throws Error BAD_ARGUMENT where a sequence is longer than the model's positions.
  void check_length(int64_t tokens) const;

  // What the forward pass leaves for the backward pass; lives in the arena that was passed.
  struct Activations;

  // Hidden states [wanted][H] after the final norm. `weights` is a flat buffer as `layout` describes.
  Tensor forward(const float* weights, const PackedTokens& batch, Arena& arena, Activations& kept) const;
  // Adds to `gradients` (same layout) what d_hidden [wanted][H] says.
  void backward(const float* weights, float* gradients, const PackedTokens& batch, Arena& arena,
                const Activations& kept, Tensor d_hidden) const;
  // Hidden states [wanted][H]; the keys and values of all new tokens are added to `cache`, one entry a layer.
  Tensor forward_paged(const float* weights, const PagedTokens& batch, const std::vector<PagedCache>& cache,
                       Arena& arena) const;

  // A weight of the flat buffer as a matrix.
  Tensor matrix(const float* weights, int64_t offset, int64_t rows, int64_t columns) const;

  struct Activations {
    struct Layer {
      Tensor input, normed, qkv, heads, attended, passed_on, middle, post_normed, gate_up, activated;
      float *input_scales, *query_scales, *key_scales, *post_scales, *log_sums;
    };
    std::vector<Layer> layers;
    Tensor last;
    float* last_scales;
    const int32_t *tokens, *positions, *wanted;
  };

 private:
  struct Weights;  // views of one layer's weights
  Weights weights_of(const float* buffer, int64_t layer) const;
  Rotary rotary(const int32_t* positions) const { return {positions, cosine_, sine_}; }

  Device& device_;
  ModelConfig config_;
  ModelLayout layout_;
  float *cosine_, *sine_;  // device, [max position][head_size / 2]
};

}  // namespace gigpo
