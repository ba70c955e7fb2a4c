// Where the transformer's passes keep what they compute. Each set of buffers is taken from an arena by sizes alone, before anything
// runs: a pass takes them from its device, a plan of memory from an arena that counts.
#pragma once
#include "core/adapter.h"
#include "core/arena.h"

namespace gigpo {

// What the forward pass throws away and the backward pass computes again, each more than the one before. The results are the
// same to the bit.
enum class Recompute {
  none,
  norms,  // normalised inputs, and what goes into the down projection
  mlp,    // also gate and up
  block,  // all but what goes into a layer
};

// What the sizes of a pass depend on.
struct PassShape {
  const ModelConfig& config;
  const AdapterConfig& adapter;
  int64_t tokens, wanted;  // that are computed; whose hidden states are asked for
};

// Of the forward pass, kept for the backward pass.
struct Activations {
  // In the order in which they are computed; `narrow` are the products with the adapters' A, as rows of [ranks]; empty without pairs.
  struct Layer {
    Tensor input, normed, qkv, heads, attended, passed_on, middle, post_normed, gate_up, activated;
    Tensor narrow_qkv, narrow_output, narrow_gate_up, narrow_down;
    float *input_scales, *query_scales, *key_scales, *post_scales, *log_sums;
  };
  std::vector<Layer> layers;
  Tensor last, hidden;  // what goes into the final norm, and what comes out
  float* last_scales;

  // The hidden states that nobody wants need no more of the last layer than their keys and values: both forward passes leave
  // them out after its attention. What is computed again lies in one place for all layers.
  void allocate(const PassShape& shape, Recompute recompute, Arena& arena);
};

// Of the backward pass, for one layer after the other: gradients of what the names say. Above the last layer's attention there are
// the wanted rows only, of which there may be more than tokens; below it there are all.
struct ActivationGradients {
  ActivationGradients(const PassShape& shape, Arena& arena);

  Tensor wanted_x, wanted_attended, x, attended;
  Tensor normed, gate_up, activated, narrow;  // as many rows as either has
  Tensor qkv, heads;                          // `heads` only where queries and keys are normalised
};

// Of a step of sampling: nothing is kept between layers, so one set serves all.
struct StepBuffers {
  StepBuffers(const PassShape& shape, Arena& arena);

  Tensor x, normed, attended, gate_up, activated, narrow, qkv;
  Tensor wanted_x, wanted_attended;
};

// Room for the logits of so many hidden states, in fp32 whatever else is computed in: from 16 to 32 a bf16 is off by up to 1/16,
// and the ratio of a token's probabilities under sampler and trainer with it by up to 13 %.
inline Tensor logits_of(const ModelConfig& config, int64_t rows, Arena& arena) { return arena.tensor(rows, config.outputs(), Type::f32); }

// Of the policy's head on the wanted rows. The logits of all of them never exist at once.
struct HeadBuffers {
  HeadBuffers(const PassShape& shape, int64_t chunk_rows, int most_lanes, bool training, Arena& arena);

  PolicyHeadRow* inputs;
  std::vector<Tensor> logits;  // of one chunk each, as many as are under way at once
  Tensor d_hidden;             // empty where it only scores
};

}  // namespace gigpo
