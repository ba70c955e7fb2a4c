#include "core/adapter.h"

#include <algorithm>

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
  if (c.head == Head::value) head = add("base_model.model.score.weight", 1, h);
}

// PEFT's name of a pair is that of its projection, with a prefix and another end.
AdapterLayout::Pair AdapterLayout::pair_of(const std::string& projection) const {
  const std::string end = ".weight", name = "base_model.model." + projection.substr(0, projection.size() - end.size());
  const auto find = [&](const char* half) {
    const auto at = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name + half; });
    return at == parameters.end() ? nullptr : &*at;
  };
  return {find(".lora_A.weight"), find(".lora_B.weight")};
}

}  // namespace gigpo
