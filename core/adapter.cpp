#include "core/adapter.h"

#include <string_view>
#include <unordered_map>

namespace gigpo {

AdapterLayout::AdapterLayout(const ModelConfig& c, const AdapterConfig& adapter) {
  if (!adapter) return;
  struct Projection {
    const char* name;
    int64_t rows;
  };
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    parameters.push_back({name, {rows, columns}, size});
    const int64_t offset = size;
    size += rows * columns;
    return offset;
  };
  const auto beside = [&](const std::string& at, int64_t in, std::initializer_list<Projection> projections) {
    LinearAdapterLayout layout{size, {}, {}};
    for (const Projection& p : projections) add(at + p.name + ".lora_A.weight", adapter.rank, in);
    for (const Projection& p : projections) {
      layout.b.push_back(add(at + p.name + ".lora_B.weight", p.rows, adapter.rank));
      layout.rows.push_back(p.rows);
    }
    return layout;
  };
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns(), i = c.intermediate_size;
  for (int64_t l = 0; l < c.layers; l++) {
    const std::string at = "base_model.model.model.layers." + std::to_string(l) + ".";
    Layer layer;
    layer.qkv = beside(at + "self_attn.", h, {{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}});
    layer.output = beside(at + "self_attn.", q, {{"o_proj", h}});
    layer.gate_up = beside(at + "mlp.", h, {{"gate_proj", i}, {"up_proj", i}});
    layer.down = beside(at + "mlp.", i, {{"down_proj", h}});
    layers.push_back(std::move(layer));
  }
}

// PEFT's name of a pair is that of its projection, with a prefix and an end.
void merge_adapter(const ModelConfig& config, const AdapterConfig& adapter, const float* weights, float* model) {
  const ModelLayout model_layout(config);
  const AdapterLayout layout(config, adapter);
  const std::string before = "base_model.model.", a_end = ".lora_A.weight";
  std::unordered_map<std::string_view, const Parameter*> pairs, projections;
  for (const Parameter& parameter : layout.parameters) pairs[parameter.name] = &parameter;
  for (const Parameter& parameter : model_layout.parameters) projections[parameter.name] = &parameter;
  for (const Parameter& a : layout.parameters) {
    if (!a.name.ends_with(a_end)) continue;
    const std::string name = a.name.substr(0, a.name.size() - a_end.size());
    const Parameter& b = *pairs.at(name + ".lora_B.weight");
    const Parameter& projection = *projections.at(name.substr(before.size()) + ".weight");
    const int64_t in = a.shape[1];
    for (int64_t row = 0; row < b.shape[0]; row++) {
      float* out = model + projection.offset + row * in;
      for (int64_t r = 0; r < adapter.rank; r++) {
        const float factor = adapter.scale() * weights[b.offset + row * adapter.rank + r];
        const float* from = weights + a.offset + r * in;
        for (int64_t column = 0; column < in; column++) out[column] += factor * from[column];
      }
    }
  }
}

}  // namespace gigpo
