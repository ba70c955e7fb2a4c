// The models that are measured: true shapes, random weights.
#pragma once
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/error.h"

namespace gigpo::bench {

inline ModelConfig qwen(int64_t hidden, int64_t intermediate, int64_t layers, int64_t heads, int64_t kv_heads, int64_t head_size,
                        int64_t vocabulary, bool tied) {
  ModelConfig c{};
  c.vocabulary_size = vocabulary, c.hidden_size = hidden, c.intermediate_size = intermediate, c.layers = layers;
  c.heads = heads, c.key_value_heads = kv_heads, c.head_size = head_size, c.max_positions = 8192;
  c.rms_norm_epsilon = 1e-6, c.rotary = {{1e6}}, c.tie_embeddings = tied, c.query_key_value_bias = true;
  return c;
}

// Qwen2.5's sizes by their usual names; "tiny" is for trying the program.
inline ModelConfig model_named(const std::string& name) {
  if (name == "tiny") return qwen(64, 96, 2, 4, 2, 16, 512, true);
  if (name == "0.5b") return qwen(896, 4864, 24, 14, 2, 64, 151936, true);
  if (name == "1.5b") return qwen(1536, 8960, 28, 12, 2, 128, 151936, true);
  if (name == "3b") return qwen(2048, 11008, 36, 16, 2, 128, 151936, true);
  if (name == "7b") return qwen(3584, 18944, 28, 28, 4, 128, 152064, false);
  throw Error("BAD_ARGUMENT", "There is no model " + name + ": tiny, 0.5b, 1.5b, 3b, 7b.");
}

// Weights that multiplications are done with at every token: all but norms and the embedding's rows.
inline int64_t head_weights(const ModelConfig& c) { return c.vocabulary_size * c.hidden_size; }
inline int64_t body_weights(const ModelConfig& c) {
  const int64_t attention = 2 * c.query_columns() * c.hidden_size + 2 * c.key_value_columns() * c.hidden_size;
  return c.layers * (attention + 3 * c.hidden_size * c.intermediate_size);
}

// Operations of one forward and backward pass over rows of `length` tokens, of which `head_tokens` go through the head: three
// products of two operations a weight and token, and attention's scores and sums over half a row on average.
inline double training_operations(const ModelConfig& c, double tokens, double head_tokens, double length) {
  const double attention = 6 * double(c.layers) * double(c.query_columns()) * length;
  return tokens * (6 * double(body_weights(c)) + attention) + 6 * double(head_weights(c)) * head_tokens;
}

// Small random weights, norms of 1, biases of 0. One block of numbers is used over and over: a billion draws would take minutes.
inline void fill_weights(Engine& engine) {
  constexpr int64_t block = int64_t{1} << 22;
  std::vector<float> noise(block), ones(engine.transformer().config().hidden_size, 1.f), zeros(1 << 16, 0.f);
  for (int64_t i = 0; i < block; i++) noise[i] = 0.035f * (2 * open_uniform(philox({1, 2}, uint32_t(i), 0, 0, 0).word[0]) - 1);
  const auto write = [&](int64_t offset, const std::vector<float>& values, int64_t count) {
    engine.actor().write(Buffer::weights, offset, std::span(values).first(count));
  };
  for (const Parameter& parameter : engine.transformer().layout().parameters) {
    const bool norm = parameter.name.ends_with("norm.weight");
    if (parameter.shape.size() == 1) {
      write(parameter.offset, norm ? ones : zeros, parameter.size());
      continue;
    }
    for (int64_t at = 0; at < parameter.size(); at += block) {
      write(parameter.offset + at, noise, std::min(block, parameter.size() - at));
    }
  }
}

}  // namespace gigpo::bench
