// A small vision-language model, and images for it, of the targets that give its engine batches and requests.
#pragma once
#include "test/core/engine_subject.h"
#include "test/core/fuzz/input.h"

namespace gigpo::test {

constexpr int32_t image_token = 5;

inline ModelConfig fuzzed_model() {
  ModelConfig c = windowed_model(true);
  c.max_positions = 96;
  VisionConfig tower{};
  tower.kind = VisionConfig::Kind::qwen2_5;
  tower.hidden_size = 8, tower.intermediate_size = 12, tower.layers = 1, tower.heads = 2;
  tower.channels = 1, tower.patch_size = 2, tower.merge = 2, tower.window = 1;
  tower.epsilon = 1e-5, tower.image_token = image_token, tower.sections = {2, 1, 1}, tower.trained = true;
  c.vision = tower;
  c.check();
  return c;
}

// Engine with little room for sequences. Never destroyed: it lives as long as its process.
inline Subject& fuzzed_subject() {
  static Subject* const subject = [] {
    Setup setup;
    setup.cache_bytes = 1 << 16, setup.step_tokens = 24;
    return new Subject([] { return make_cpu_device(1); }, fuzzed_model(), setup);
  }();
  return *subject;
}

// An input is odd or not: only in an odd one are there values that are refused, so that the others reach what follows the checks.

// A text token; in an odd input sometimes an image token, or one outside the vocabulary.
inline int32_t token_of(Input& in, bool odd) {
  const int kind = odd ? in.below(24) : 2;
  return kind == 0 ? in.take<int32_t>() : kind == 1 ? image_token : 6 + in.below(47);
}

// Images of some patches; in an odd input sometimes with a grid or values that do not fit. Equal hashes mean equal images, so the hash names grid
// and values.
inline std::vector<std::shared_ptr<const Image>> images_of(Input& in, bool odd) {
  std::vector<std::shared_ptr<const Image>> images;
  for (int count = in.below(5) - 2; count > 0; count--) {
    const auto image = std::make_shared<Image>();
    if (odd && in.below(4) == 0) image->grid = {in.number<int32_t>(3), in.number<int32_t>(6), in.number<int32_t>(6)};
    else image->grid = {1, 2 + 2 * in.below(2), 2 + 2 * in.below(2)};
    const bool fits = !odd || in.below(4) != 0;
    const int64_t patches = image->grid[1] * image->grid[2];
    image->values = in.list<float>(fits && patches > 0 && patches < 256 ? size_t(4 * patches) : size_t(in.below(40)));
    image->hash.assign(reinterpret_cast<const char*>(image->values.data()), image->values.size() * sizeof(float));
    for (const int64_t extent : image->grid) image->hash += "/" + std::to_string(extent);
    images.push_back(image);
  }
  return images;
}

// Appends the tokens of an image, one for 2 × 2 patches.
inline void append_image(const Image& image, std::vector<int32_t>& tokens) {
  const int64_t features = image.grid[1] * image.grid[2] / 4;
  if (features > 0 && features < 64) tokens.insert(tokens.end(), size_t(features), image_token);
}

}  // namespace gigpo::test
