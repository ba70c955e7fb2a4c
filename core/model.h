// Model configuration and layout of the weights in one flat buffer. Parameter names follow Hugging Face.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/gate.h"
#include "core/rotary.h"
#include "core/vision_config.h"

namespace gigpo {

// Head after the final norm: of a language model, [vocabulary][H], or of a critic, [1][H].
enum class Head { language, value };

// Properties in which layers of a model differ.
struct LayerKind {
  int64_t window = 0;  // sliding window: tokens that a token attends to, itself included; 0: no window
  int rope = 0;        // index in ModelConfig::rotary; `none`: queries and keys are not rotated

  static constexpr int none = -1;
};

// Configuration of a model. Qwen2 has query_key_value_bias, Qwen3 has query_key_norm, Llama, Mistral and SmolLM3 have neither. Qwen, Mistral
// and SmolLM3 may have sliding windows; SmolLM3 has layers without rotary positions. Gemma3 has query_key_norm, windows with a rotary table
// of their own, and a form of the layers of its own.
struct ModelConfig {
  int64_t vocabulary_size, hidden_size, intermediate_size, layers, heads, key_value_heads, head_size, max_positions;
  double rms_norm_epsilon;
  std::vector<RotaryTable> rotary;
  std::vector<LayerKind> kinds;  // one per layer; empty where all are LayerKind{}
  bool tie_embeddings, query_key_value_bias, query_key_norm;
  Gate gate = Gate::silu;
  float norm_offset = 0;      // RMS norms multiply by w + norm_offset
  bool branch_norms = false;  // the outputs of attention and feed-forward network are normalised before they are added to the residual stream
  double embedding_scale = 1;
  double query_scalar = 0;    // scores are divided by its square root; 0: by that of the head size
  Head head = Head::language;
  std::optional<VisionConfig> vision = {};  // vision tower; only of a language model, whose critic gets the features

  static constexpr int64_t least_positions = 2;  // shortest sequence: one prompt token and one completion token

  // Throws Error BAD_ARGUMENT, with the name of the size in NativeModel of src/native/model.ts, if a size is out of its bounds or does not fit the
  // others. Other functions take configurations that pass.
  void check() const;

  int64_t query_columns() const { return heads * head_size; }
  int64_t key_value_columns() const { return key_value_heads * head_size; }
  LayerKind kind(int64_t layer) const { return kinds.empty() ? LayerKind{} : kinds[layer]; }
  // Windows of the layers; 0 also where no sequence is longer than the window.
  std::vector<int64_t> windows() const {
    std::vector<int64_t> result;
    for (int64_t l = 0; l < layers; l++) result.push_back(kind(l).window < max_positions ? kind(l).window : 0);
    return result;
  }
  // Factor of cosines and sines that makes scores q·k / √D those of query_scalar s: both sides have it, so it is √(√(D / s)).
  double rotary_factor() const { return query_scalar > 0 ? std::sqrt(std::sqrt(double(head_size) / query_scalar)) : 1; }
  // Multiply-adds for one token: of the products with all weights, and, in one layer, of attention to each token that is visible.
  int64_t weight_products() const {
    const int64_t of_layer = 2 * hidden_size * (query_columns() + key_value_columns()) + 3 * hidden_size * intermediate_size;
    return layers * of_layer + outputs() * hidden_size;
  }
  int64_t attention_products() const { return 2 * query_columns(); }
  int64_t outputs() const { return head == Head::value ? 1 : vocabulary_size; }  // rows of the head
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;  // as in the model file: [n] or [out][in]
  int64_t offset;              // in elements

  int64_t size() const;
};

// Offsets of the weights of one layer. Query, key and value projections are adjacent, so that one multiplication computes all three;
// likewise gate and up. `post_norm` is that before the feed-forward network; `output_norm` and `down_norm` are those of branch_norms.
struct LayerLayout {
  int64_t input_norm, qkv, qkv_bias, query_norm, key_norm, output, output_norm, post_norm, gate_up, down, down_norm;
};

// Layout of a model in one flat buffer. The head comes after the rest of the language model, so models that differ only in the head have
// equal offsets up to the head. A vision tower follows; a critic has none.
struct ModelLayout {
  std::vector<Parameter> parameters;
  std::vector<LayerLayout> layers;
  VisionLayout vision;
  int64_t embedding, final_norm, head, size;
  int64_t tower;    // offset of the vision tower; `size` if there is none
  int64_t trained;  // weights that are trained where all weights are: without the tower, unless VisionConfig::trained

  explicit ModelLayout(const ModelConfig& config);
  std::vector<Parameter> trained_parameters() const;

 private:
  int64_t add(std::string name, std::vector<int64_t> shape);
  void add_qwen2_5(const VisionConfig& c, int64_t features);
  void add_siglip(const VisionConfig& c, int64_t features);
};

}  // namespace gigpo
