#include "core/model.h"

namespace gigpo {

int64_t Parameter::size() const {
  int64_t result = 1;
  for (const int64_t extent : shape) result *= extent;
  return result;
}

ModelLayout::ModelLayout(const ModelConfig& c) : size(0) {
  const auto add = [&](std::string name, std::vector<int64_t> shape) {
    parameters.push_back({std::move(name), std::move(shape), size});
    const int64_t offset = size;
    size += parameters.back().size();
    return offset;
  };
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns(), i = c.intermediate_size;
  embedding = add("model.embed_tokens.weight", {c.vocabulary_size, h});
  for (int64_t l = 0; l < c.layers; l++) {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    LayerLayout layer{};
    layer.input_norm = add(at + "input_layernorm.weight", {h});
    layer.qkv = add(at + "self_attn.q_proj.weight", {q, h});
    add(at + "self_attn.k_proj.weight", {kv, h});
    add(at + "self_attn.v_proj.weight", {kv, h});
    if (c.query_key_value_bias) {
      layer.qkv_bias = add(at + "self_attn.q_proj.bias", {q});
      add(at + "self_attn.k_proj.bias", {kv});
      add(at + "self_attn.v_proj.bias", {kv});
    }
    if (c.query_key_norm) {
      layer.query_norm = add(at + "self_attn.q_norm.weight", {c.head_size});
      layer.key_norm = add(at + "self_attn.k_norm.weight", {c.head_size});
    }
    layer.output = add(at + "self_attn.o_proj.weight", {h, q});
    if (c.branch_norms) layer.output_norm = add(at + "post_attention_layernorm.weight", {h});
    layer.post_norm = add(at + (c.branch_norms ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight"), {h});
    layer.gate_up = add(at + "mlp.gate_proj.weight", {i, h});
    add(at + "mlp.up_proj.weight", {i, h});
    layer.down = add(at + "mlp.down_proj.weight", {h, i});
    if (c.branch_norms) layer.down_norm = add(at + "post_feedforward_layernorm.weight", {h});
    layers.push_back(layer);
  }
  final_norm = add("model.norm.weight", {h});
  if (c.head == Head::value) head = add("score.weight", {1, h});
  else head = c.tie_embeddings ? embedding : add("lm_head.weight", {c.vocabulary_size, h});
}

}  // namespace gigpo
