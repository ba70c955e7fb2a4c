// Configuration and weights of a vision tower: the part of a vision-language model that turns the patches of an image into features, rows
// that take the places of embeddings at the image's tokens. Parameter names follow Hugging Face.
#pragma once
#include <cstdint>
#include <vector>

namespace gigpo {

// Towers are transformers over patches, without a causal mask:
//   x = W patch (+ b + position);  x += attention(norm(x));  x += mlp(norm(x));  feature = connector(norm of merge² adjacent x)
struct VisionConfig {
  // qwen2_5: Qwen2.5-VL (arXiv 2502.13923), with RMS norms, rotary positions in two dimensions, attention within windows in most blocks, a
  // gated feed-forward network, and a connector of two layers. siglip: SmolVLM (arXiv 2504.05299), with SigLIP (arXiv 2303.15343): layer
  // norms, learned positions of the patches of a square tile, a feed-forward network of two layers with gelu, and a connector of one layer.
  enum class Kind { qwen2_5, siglip };
  Kind kind;
  int64_t hidden_size, intermediate_size, layers, heads;
  int64_t channels, patch_size;
  int64_t frames = 1;  // of a patch
  int64_t merge;       // a feature covers merge × merge patches
  int64_t window = 0;  // features along a side of a window
  std::vector<int64_t> full_layers;  // blocks whose attention is not limited to windows
  int64_t side = 0;    // patches along a side of a tile, if images are tiles of one size
  double epsilon;
  int32_t image_token;  // id of the tokens that features replace
  // Rotary pairs of the language model that turn by a token's frame, row and column (M-RoPE, arXiv 2409.12191); empty: all turn by the position.
  std::vector<int64_t> sections;
  bool trained = false;

  // Throws Error BAD_ARGUMENT, with the name of the size in NativeVision of src/native/model.ts, if a size is out of its bounds or does not fit
  // the others. `vocabulary` and `language_head_size` are those of the language model.
  void check(int64_t vocabulary, int64_t language_head_size) const;

  bool gated() const { return kind == Kind::qwen2_5; }
  int64_t head_size() const { return hidden_size / heads; }
  int64_t group() const { return merge * merge; }  // patches of a feature
  int64_t patch_columns() const { return channels * frames * patch_size * patch_size; }
  int64_t up_columns() const { return gated() ? 2 * intermediate_size : intermediate_size; }
  int64_t tile_patches() const { return side * side; }
  bool windowed(int64_t layer) const {
    if (window == 0) return false;
    for (const int64_t full : full_layers) {
      if (full == layer) return false;
    }
    return true;
  }
};

// Offsets of the weights of one block; -1: none. Query, key and value projections are adjacent, likewise gate and up.
struct VisionBlockLayout {
  int64_t norm1, norm1_bias, qkv, qkv_bias, output, output_bias, norm2, norm2_bias, up, up_bias, down, down_bias;
};

// Offsets of the tower's weights; -1: none. `merge_up` is the first of two layers of the connector.
struct VisionLayout {
  int64_t patches = -1, patches_bias = -1, positions = -1;
  std::vector<VisionBlockLayout> blocks;
  int64_t norm = -1, norm_bias = -1, merge_up = -1, merge_up_bias = -1, merge = -1, merge_bias = -1;
};

}  // namespace gigpo
