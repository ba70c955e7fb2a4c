// Activation buffers of the transformer's passes. Each set of buffers is allocated from an arena by sizes alone, before any computation.
// A pass allocates them on its device. A memory plan allocates them from an arena that only counts.
#pragma once
#include "core/adapter.h"
#include "core/arena.h"

namespace gigpo {

// Activation recomputation (gradient checkpointing): what the forward pass discards and the backward pass computes again. Each level
// includes the levels before. The results are bit-identical at all levels.
enum class Recompute {
  none,
  norms,  // normalised inputs, and the input of the down projection
  mlp,    // also gate and up
  block,  // everything except the input of each layer
};

// Quantities that determine the buffer sizes of a pass.
struct PassShape {
  const ModelConfig& config;
  const AdapterConfig& adapter;
  int64_t tokens, wanted;  // tokens that are computed; tokens whose hidden states are returned
};

// Activations of the forward pass that the backward pass needs.
struct Activations {
  // In the order of computation. `narrow_*` are the products with the adapters' A, [tokens][ranks]; empty without adapter pairs.
  struct Layer {
    Tensor input, normed, qkv, heads, attended, passed_on, middle, post_normed, gate_up, activated;
    Tensor projected, fed;  // outputs of attention and feed-forward network before their norms; empty without branch_norms
    Tensor narrow_qkv, narrow_output, narrow_gate_up, narrow_down;
    float *input_scales, *query_scales, *key_scales, *post_scales, *log_sums, *projected_scales, *fed_scales;
  };
  std::vector<Layer> layers;
  Tensor last, hidden;  // input and output of the final norm
  float* last_scales;

  // Tokens whose hidden states are not returned need only their keys and values in the last layer: both forward passes drop these tokens
  // after its attention. Recomputed activations use the same memory in all layers.
  void allocate(const PassShape& shape, Recompute recompute, Arena& arena);
};

// Gradients of the backward pass, reused from layer to layer and named after the activation. After the last layer's attention there are
// only the wanted rows, possibly more than tokens, because they may repeat. Before it there are all tokens.
struct ActivationGradients {
  ActivationGradients(const PassShape& shape, Arena& arena);

  Tensor wanted_x, wanted_attended, x, attended;
  Tensor normed, gate_up, activated, narrow;  // max(tokens, wanted) rows
  Tensor qkv, heads;                          // `heads` only where queries and keys are normalised
};

// Buffers of one sampling step. No data is kept between layers, so all layers use the same set.
struct StepBuffers {
  StepBuffers(const PassShape& shape, Arena& arena);

  Tensor x, normed, attended, gate_up, activated, narrow, qkv;
  Tensor wanted_x, wanted_attended;
};

// Allocates logits [rows][outputs], in fp32 at every precision. Between 16 and 32 the rounding error of bf16 is up to 1/16, which would
// change the ratio of a token's probabilities under sampler and trainer by up to 13 %.
inline Tensor logits_of(const ModelConfig& config, int64_t rows, Arena& arena) { return arena.tensor(rows, config.outputs(), Type::f32); }

// Buffers of the policy's head on the wanted rows. The logits of all rows never exist at once.
struct HeadBuffers {
  HeadBuffers(const PassShape& shape, int64_t chunk_rows, int most_lanes, bool training, Arena& arena);

  PolicyHeadRow* inputs;
  std::vector<Tensor> logits;  // one chunk each; as many as are processed at once
  Tensor d_hidden;             // empty if the pass only scores
};

}  // namespace gigpo
