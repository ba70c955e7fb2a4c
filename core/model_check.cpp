// Bounds of model sizes, so that the bytes of a model fit in 64 bits and its tensors can be enumerated.
#include "core/error.h"
#include "core/model.h"

namespace gigpo {

namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error("BAD_ARGUMENT", sentence); }

void within(int64_t value, const char* name, int64_t least, int64_t most) {
  if (value < least || value > most)
    refuse(std::string(name) + " must be between " + std::to_string(least) + " and " + std::to_string(most) + ".");
}

// Largest product of sizes of a vision tower that is a row of its weights. Published towers have some thousands.
constexpr int64_t widest = 1 << 24;

}  // namespace

void VisionConfig::check(int64_t vocabulary, int64_t language_head_size) const {
  within(hidden_size, "hiddenSize", 1, 1 << 16);
  within(intermediate_size, "intermediateSize", 1, 1 << 18);
  within(layers, "layers", 1, 1 << 10);
  within(heads, "heads", 1, 1 << 10);
  within(channels, "channels", 1, 1 << 8);
  within(patch_size, "patchSize", 1, 1 << 10);
  within(frames, "frames", 1, 1 << 8);
  within(merge, "merge", 1, 1 << 8);
  within(window, "window", 0, 1 << 16);
  within(side, "tileSide", 0, 1 << 10);
  within(image_token, "imageToken", 0, vocabulary - 1);
  for (const int64_t layer : full_layers) within(layer, "An entry of fullLayers", 0, layers - 1);
  within(patch_columns(), "The tower's channels × frames × patchSize²", 1, widest);
  within(group() * hidden_size, "The tower's merge² × hiddenSize", 1, widest);
  if (hidden_size % heads != 0) refuse("The tower's hiddenSize must be a multiple of its heads.");
  if (gated() ? head_size() % 4 != 0 || side > 0 : side == 0 || side % merge != 0)
    refuse("The sizes of the vision tower do not fit its kind.");
  int64_t pairs = 0;
  for (const int64_t section : sections) {
    within(section, "An entry of sections", 0, language_head_size);
    pairs += section;
  }
  if (!sections.empty() && pairs != language_head_size / 2) refuse("sections must add up to half of headSize.");
}

void ModelConfig::check() const {
  within(vocabulary_size, "vocabularySize", 1, 1 << 24);
  within(hidden_size, "hiddenSize", 1, 1 << 20);
  within(intermediate_size, "intermediateSize", 1, 1 << 20);
  within(layers, "layers", 1, 1 << 12);
  within(heads, "heads", 1, 1 << 12);
  within(key_value_heads, "keyValueHeads", 1, 1 << 12);
  within(head_size, "headSize", 2, 1 << 12);
  within(max_positions, "maxPositions", least_positions, INT32_MAX);
  if (heads % key_value_heads != 0) refuse("heads must be a multiple of keyValueHeads.");
  if (head_size % 2 != 0) refuse("headSize must be even.");
  if (!kinds.empty() && int64_t(kinds.size()) != layers) refuse("layerTable must have an entry for each layer.");
  within(int64_t(rotary.size()), "The number of rotary tables", 1, 16);
  for (const LayerKind& kind : kinds) {
    within(kind.window, "window", 0, INT32_MAX);
    within(kind.rope, "rope", LayerKind::none, int64_t(rotary.size()) - 1);
  }
  if (vision) vision->check(vocabulary_size, head_size);
  // 2⁵⁰ weights with the gradients, moments and copies of training are below 2⁵⁶ bytes.
  within(ModelLayout(*this).size, "The number of weights", 1, int64_t{1} << 50);
}

}  // namespace gigpo
