// The decoder-only transformer of Qwen2, Qwen3 and Llama, written once over a Device:
//   x = embed(token);  x += attention(norm(x));  x += swiglu(norm(x));  hidden = norm(x)
// Forward and backward over packed rows for training, and over new tokens with a paged cache for generation.
#pragma once
#include "core/adapter.h"
#include "core/packed_tokens.h"

namespace gigpo {

// Flat buffers as the layouts describe, of one type each: the weights that a pass uses, or the gradients that it adds to. As
// weights, an empty adapter is switched off; as gradients, what is empty is frozen.
struct PolicyTensors {
  Tensor model, adapter;
};

// What the forward pass throws away and the backward pass computes again, each more than the one before. The results are the
// same to the bit.
enum class Recompute {
  none,
  norms,  // normalised inputs, and what goes into the down projection
  mlp,    // also gate and up
  block,  // all but what goes into a layer
};

class Transformer {
 public:
  Transformer(Device& device, const ModelConfig& config, const AdapterConfig& adapter = {},
              Recompute recompute = Recompute::none);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  const ModelLayout& layout() const { return layout_; }
  const AdapterConfig& adapter() const { return adapter_; }
  const AdapterLayout& adapter_layout() const { return adapter_layout_; }
  // What is trained: the adapter where there is one, else the model.
  bool adapted() const { return bool(adapter_); }
  const std::vector<Parameter>& trained() const { return adapted() ? adapter_layout_.parameters : layout_.parameters; }
  int64_t trained_size() const { return adapted() ? adapter_layout_.size : layout_.size; }

  // Throws Error BAD_ARGUMENT where a sequence is longer than the model's positions.
  void check_length(int64_t tokens) const;

  // What the forward pass leaves for the backward pass; lives in the arena that was passed.
  struct Activations;

  // Hidden states [wanted][H] after the final norm.
  Tensor forward(const PolicyTensors& weights, const PackedTokens& batch, Arena& arena, Activations& kept) const;
  // Adds to `gradients` what d_hidden [wanted][H] says.
  void backward(const PolicyTensors& weights, const PolicyTensors& gradients, const PackedTokens& batch, Arena& arena,
                const Activations& kept, Tensor d_hidden) const;
  // Hidden states [wanted][H], empty where none is wanted; the keys and values of all new tokens are added to `cache`, one
  // entry a layer. Touches no host memory: it may be replayed.
  Tensor forward_paged(const PolicyTensors& weights, const PagedTokens::Uploaded& batch,
                       const std::vector<PagedCache>& cache, Arena& arena) const;

  // Room for the logits of so many hidden states, in fp32 whatever else is computed in: from 16 to 32 a bf16 is off by up to 1/16,
  // and the ratio of a token's probabilities under sampler and trainer with it by up to 13 %.
  Tensor logits(int64_t rows, Arena& arena) const { return arena.tensor(rows, config_.outputs(), Type::f32); }
  // [outputs][H]
  Tensor head(const PolicyTensors& from) const {
    if (adapted() && config_.head == Head::value) return from.adapter.matrix(adapter_layout_.head, 1, config_.hidden_size);
    return from.model.matrix(layout_.head, config_.outputs(), config_.hidden_size);
  }

  struct Activations {
    // In the order in which they are computed; `narrow` are the products with the adapters' A, as rows of [parts · rank].
    struct Layer {
      Tensor input, normed, qkv, heads, attended, passed_on, middle, post_normed, gate_up, activated;
      Tensor narrow_qkv, narrow_output, narrow_gate_up, narrow_down;
      float *input_scales, *query_scales, *key_scales, *post_scales, *log_sums;
    };
    std::vector<Layer> layers;
    Tensor last;
    float* last_scales;
    PackedRows rows;
    const int32_t *tokens, *positions, *wanted;
  };

 private:
  struct Linear;   // a projection with its bias and adapter
  struct Weights;  // one layer's

  Weights layer_of(const PolicyTensors& from, int64_t layer) const;
  Tensor embedding(Tensor model) const {
    return model.matrix(layout_.embedding, config_.vocabulary_size, config_.hidden_size);
  }
  Rotary rotary(const int32_t* positions) const { return {positions, cosine_, sine_}; }
  float epsilon() const { return float(config_.rms_norm_epsilon); }

  // `narrow` receives the product with the adapter's A; `added` as Device::linear has it.
  void linear(const Linear& layer, Tensor x, Tensor added, Tensor y, Tensor narrow) const;
  void linear_backward(const Linear& layer, const Linear& gradients, Tensor d_y, Tensor x, Tensor narrow, Tensor d_x,
                       Tensor d_narrow) const;

  void allocate_layers(const PackedTokens& batch, Arena& arena, Activations& kept) const;
  void attention_half(const Weights& w, const Activations& kept, const Activations::Layer& a) const;
  void mlp_half(const Weights& w, const Activations::Layer& a) const;
  void compute_again(const Weights& w, const Activations& kept, const Activations::Layer& a) const;

  Device& device_;
  ModelConfig config_;
  AdapterConfig adapter_;
  Recompute recompute_;
  ModelLayout layout_;
  AdapterLayout adapter_layout_;
  float *cosine_, *sine_;  // device, [max position][head_size / 2]
};

}  // namespace gigpo
