#include "core/adapter.h"

#include <algorithm>

#include "core/error.h"

namespace gigpo {

static const std::string embedding_name = "model.embed_tokens.weight", head_name = "lm_head.weight";

void AdapterConfig::check() const {
  for (const auto& layer : layers) {
    for (const AdapterPair& pair : layer) {
      if (pair.rank < 0 || pair.rank > 1 << 16) throw Error("BAD_ARGUMENT", "A rank must be between 0 and 65536.");
    }
  }
}

int64_t AdapterConfig::widest() const {
  int64_t most = 0;
  for (int64_t l = 0; l < std::max<int64_t>(1, int64_t(layers.size())); l++)
    most = std::max({most, ranks(l, Projection::query, Projection::value), ranks(l, Projection::output, Projection::output),
                     ranks(l, Projection::gate, Projection::up), ranks(l, Projection::down, Projection::down)});
  return most;
}

AdapterLayout::AdapterLayout(const ModelConfig& c, const AdapterConfig& adapter) {
  if (!adapter) return;
  const ModelLayout model(c);
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    parameters.push_back({"base_model.model." + name, std::move(shape), size});
    const int64_t offset = size;
    size += parameters.back().size();
    return offset;
  };
  struct Part {
    int projection;
    const char* name;
    int64_t rows;
  };
  int64_t layer = 0;
  const auto adapted = [&](const std::string& at, int64_t in, std::initializer_list<Part> made) {
    LinearAdapterLayout layout{size, 0, {}};
    int64_t column = 0;
    for (const Part& p : made) {
      const AdapterPair pair = adapter.pair(layer, p.projection);
      if (pair.rank > 0) {
        add(at + p.name + ".lora_A.weight", {pair.rank, in});
        layout.parts.push_back({0, p.rows, column, layout.ranks, pair.rank, pair.scale});
        layout.ranks += pair.rank;
      }
      column += p.rows;
    }
    auto part = layout.parts.begin();
    for (const Part& p : made) {
      if (adapter.pair(layer, p.projection).rank == 0) continue;
      part->b = add(at + p.name + ".lora_B.weight", {p.rows, part->rank});
      scales_[parameters.back().name] = part->scale;
      part++;
    }
    return layout;
  };
  // Parameters are in the order of the model; those of a layer that are trained in full follow its pairs.
  auto parameter = model.parameters.begin();
  const auto whole_until = [&](const std::string& prefix) {
    for (; parameter != model.parameters.end() && parameter->name.starts_with(prefix); parameter++) {
      const bool is_head = parameter->offset == model.head && model.head != model.embedding;
      if (!is_head && adapter.has_whole(parameter->name)) whole[parameter->offset] = add(parameter->name, parameter->shape);
    }
  };
  whole_until(embedding_name);
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns(), i = c.intermediate_size;
  for (; layer < c.layers; layer++) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    Layer l;
    l.qkv = adapted(at + "self_attn.", h, {{Projection::query, "q_proj", q}, {Projection::key, "k_proj", kv}, {Projection::value, "v_proj", kv}});
    l.output = adapted(at + "self_attn.", q, {{Projection::output, "o_proj", h}});
    l.gate_up = adapted(at + "mlp.", h, {{Projection::gate, "gate_proj", i}, {Projection::up, "up_proj", i}});
    l.down = adapted(at + "mlp.", i, {{Projection::down, "down_proj", h}});
    layers.push_back(std::move(l));
    whole_until(at);
  }
  whole_until("model.norm.");
  before_head = size;
  if (c.head == Head::value) head = add("score.weight", {1, h});
  else if (adapter.has_whole(head_name)) head = add(head_name, {c.vocabulary_size, h});
}

const Parameter* AdapterLayout::find(const std::string& name) const {
  const auto at = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name; });
  return at == parameters.end() ? nullptr : &*at;
}

// PEFT names a pair like its projection, with a prefix and a different suffix.
AdapterLayout::Pair AdapterLayout::pair_of(const std::string& projection) const {
  const std::string end = ".weight", name = "base_model.model." + projection.substr(0, projection.size() - end.size());
  const Parameter* b = find(name + ".lora_B.weight");
  return b ? Pair{find(name + ".lora_A.weight"), b, scales_.at(b->name)} : Pair{nullptr, nullptr, 0};
}

ModelConfig merged_config(ModelConfig config, const AdapterConfig& adapter) {
  const bool apart = adapter.has_whole(embedding_name) || adapter.has_whole(head_name);
  if (config.tie_embeddings && apart && !adapter.tied && config.head == Head::language) config.tie_embeddings = false;
  return config;
}

}  // namespace gigpo
