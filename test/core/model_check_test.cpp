// Bounds of model sizes: those whose products do not fit in 64 bits are refused, and the plan of memory of the largest counts no further than a
// memory can be.
#include <functional>

#include "core/error.h"
#include "core/memory_plan.h"
#include "core/vision_input.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

ModelConfig small_model() {
  ModelConfig c{};
  c.vocabulary_size = 16, c.hidden_size = 8, c.intermediate_size = 8, c.layers = 1, c.heads = 2, c.key_value_heads = 1, c.head_size = 4, c.max_positions = 32;
  c.rms_norm_epsilon = 1e-6, c.rotary = {{1e4}};
  return c;
}

VisionConfig tiles() {
  VisionConfig c{};
  c.kind = VisionConfig::Kind::siglip;
  c.hidden_size = 8, c.intermediate_size = 8, c.layers = 1, c.heads = 1, c.channels = 3, c.patch_size = 2, c.merge = 2, c.side = 4;
  c.epsilon = 1e-6, c.image_token = 3;
  return c;
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool refuses(const std::function<void(ModelConfig&)>& change, const char* what) {
  ModelConfig config = small_model();
  config.vision = tiles();
  change(config);
  return refusal([&] { config.check(); }).find(what) != std::string::npos;
}

void test_bounds() {
  CHECK(refusal([] { small_model().check(); }).empty());
  ModelConfig config = small_model();
  config.vision = tiles();
  CHECK(refusal([&] { config.check(); }).empty());
  CHECK(refuses([](ModelConfig& c) { c.layers = 0; }, "layers must be between 1 and 4096."));
  CHECK(refuses([](ModelConfig& c) { c.key_value_heads = 3; }, "multiple of keyValueHeads"));
  CHECK(refuses([](ModelConfig& c) { c.kinds = {{}, {}}; }, "an entry for each layer"));
  CHECK(refuses([](ModelConfig& c) { c.kinds = {{.rope = 1}}; }, "rope must be between -1 and 0."));
  CHECK(refuses([](ModelConfig& c) { c.vision->sections = {1, 2}; }, "half of headSize"));
  CHECK(refuses([](ModelConfig& c) { c.vision->full_layers = {1}; }, "fullLayers"));
  CHECK(refuses([](ModelConfig& c) { c.vision->image_token = 16; }, "imageToken must be between 0 and 15."));
}

// Each size is within its bounds, but weights or patches are of 2⁶⁴ numbers.
void test_products() {
  CHECK(refuses([](ModelConfig& c) { c.vision->hidden_size = 1 << 16, c.vision->merge = 1 << 8, c.vision->side = 1 << 10; }, "merge² × hiddenSize"));
  CHECK(refuses([](ModelConfig& c) { c.vision->channels = c.vision->frames = 1 << 8, c.vision->patch_size = 1 << 10; }, "patchSize²"));
  CHECK(refuses([](ModelConfig& c) { c.layers = c.heads = c.key_value_heads = c.head_size = 1 << 12, c.hidden_size = 1 << 20; }, "number of weights"));
}

void test_many_tiles() {
  VisionConfig tower = tiles();
  tower.side = 1 << 10;
  const Image image{"a", {1 << 20, 1, 1}, {}};
  CHECK(refusal([&] { image.check(tower); }).find("too many patches") != std::string::npos);
}

// A sequence of this model takes more bytes than fit in 64 bits, which must not look as if it fit.
void test_longest_sequence() {
  ModelConfig config = small_model();
  config.intermediate_size = 1 << 20, config.layers = 1 << 12, config.max_positions = INT32_MAX;
  config.check();
  constexpr int64_t available = (int64_t{1} << 53) - 1;
  const auto [options, plan] = fit_options(config, {.micro_batch_tokens = 1, .step_tokens = 1}, cpu_traits(Type::f32, 1), {}, available);
  CHECK(plan.total() > 0 && plan.total() <= available);
  CHECK(plan.longest > 0 && plan.longest <= available, "%lld", static_cast<long long>(plan.longest));
  // A token of a layer has at least the unit's input and output, of 3 × 2²⁰ numbers.
  CHECK(plan.longest_row <= available / (int64_t{12} << 32), "%lld", static_cast<long long>(plan.longest_row));
}

}  // namespace

int main() {
  test_bounds();
  test_products();
  test_many_tiles();
  test_longest_sequence();
  return test::report();
}
