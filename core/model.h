// What a model is: its sizes, and where each weight lies in one flat buffer. Names are Hugging Face's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gigpo {

// Llama 3's rescaling of rotary frequencies (transformers, modeling_rope_utils).
struct RopeScaling {
  double factor, low_frequency_factor, high_frequency_factor, original_max_positions;
};

// What stands on the final norm: a language model's table, [vocabulary][H], or a critic's one row.
enum class Head { language, value };

// Qwen2: query_key_value_bias. Qwen3: query_key_norm. Llama: neither, perhaps rope_scaling.
struct ModelConfig {
  int64_t vocabulary_size, hidden_size, intermediate_size, layers, heads, key_value_heads, head_size, max_positions;
  double rms_norm_epsilon, rope_theta;
  std::optional<RopeScaling> rope_scaling;
  bool tie_embeddings, query_key_value_bias, query_key_norm;
  Head head = Head::language;

  static constexpr int64_t least_positions = 2;  // the shortest sequence: one token of its prompt and one of its reply

  int64_t query_columns() const { return heads * head_size; }
  int64_t key_value_columns() const { return key_value_heads * head_size; }
  int64_t outputs() const { return head == Head::value ? 1 : vocabulary_size; }  // of its head
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;  // as in the file: [n] or [out][in]
  int64_t offset;              // in floats

  int64_t size() const;
};

// Offsets of one layer's weights. Query, key and value projections lie together, so that one multiplication makes all
// three; gate and up likewise.
struct LayerLayout {
  int64_t input_norm, qkv, qkv_bias, query_norm, key_norm, output, post_norm, gate_up, down;
};

// Models that differ in their heads alone have the same offsets up to the head, which comes last.
struct ModelLayout {
  std::vector<Parameter> parameters;
  std::vector<LayerLayout> layers;
  int64_t embedding, final_norm, head, size;

  explicit ModelLayout(const ModelConfig& config);
};

// Frequencies of the rotary embedding, [head_size / 2].
std::vector<double> rotary_frequencies(const ModelConfig& config);

}  // namespace gigpo
