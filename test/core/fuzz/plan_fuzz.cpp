// Configurations of models and adapters, as the binding hands them over: bounds, layouts, the plan of memory, and a pass of a small model.
#include <cstdlib>

#include "core/error.h"
#include "core/memory_plan.h"
#include "test/core/fuzz/input.h"

namespace gigpo::test {

std::vector<Bytes> corpus() { return random_inputs(48, 160); }

// A size up to 2^bits: small, a power of two with a neighbor, or any.
static int64_t size_of(Input& in, int bits) {
  const int kind = in.below(8);
  if (kind == 0) return in.take<int64_t>();
  if (kind == 1) return (int64_t{1} << in.below(bits + 2)) + in.below(3) - 1;
  if (kind == 2) return int64_t{1} << bits;
  return 1 + in.below(12);
}

static RopeScaling scaling_of(Input& in) {
  const auto real = [&] { return in.chance() ? in.take<double>() : double(1 + in.below(64)); };
  const int kind = in.below(4);
  if (kind == 0) return Llama3Scaling{real(), real(), real(), real()};
  if (kind == 1) return YarnScaling{real(), real(), real(), real(), real(), in.chance()};
  return {};
}

static VisionConfig vision_of(Input& in) {
  VisionConfig c{};
  c.kind = in.chance() ? VisionConfig::Kind::qwen2_5 : VisionConfig::Kind::siglip;
  c.heads = size_of(in, 10);
  c.hidden_size = in.chance() ? size_of(in, 16) : c.heads > 0 && c.heads < 1 << 10 ? 4 * c.heads : 4;
  c.intermediate_size = size_of(in, 18);
  c.layers = size_of(in, 10);
  c.channels = size_of(in, 8), c.patch_size = size_of(in, 10), c.frames = size_of(in, 8), c.merge = size_of(in, 8);
  c.window = in.chance() ? size_of(in, 16) : 0;
  if (!c.gated()) c.side = size_of(in, 10);
  for (int full = in.below(4); full > 0; full--) c.full_layers.push_back(in.number<int64_t>(4));
  for (int section = in.below(4); section > 0; section--) c.sections.push_back(in.number<int64_t>(4));
  c.epsilon = 1e-5;
  c.image_token = in.number<int32_t>(9);
  c.trained = in.chance();
  return c;
}

static ModelConfig model_of(Input& in) {
  ModelConfig c{};
  c.vocabulary_size = size_of(in, 24), c.hidden_size = size_of(in, 20), c.intermediate_size = size_of(in, 20);
  c.layers = size_of(in, 12), c.key_value_heads = size_of(in, 12);
  c.heads = in.chance() ? size_of(in, 12) : c.key_value_heads;
  c.head_size = size_of(in, 12), c.max_positions = size_of(in, 31);
  if (in.chance()) c.head_size = 2;
  c.rms_norm_epsilon = 1e-5;
  for (int tables = 1 + in.below(3); tables > 0; tables--) c.rotary.push_back({in.chance() ? in.take<double>() : 1e4, scaling_of(in)});
  for (int64_t layer = 0; in.chance() && layer < c.layers && layer < 64; layer++)
    c.kinds.push_back({in.number<int64_t>(30), int32_t(uint32_t(in.number<int32_t>(3)) - 1u)});
  c.tie_embeddings = in.chance(), c.query_key_value_bias = in.chance(), c.query_key_norm = in.chance(), c.branch_norms = in.chance();
  if (in.chance()) c.gate = Gate::gelu_tanh;
  if (in.chance()) c.query_scalar = in.take<double>();
  if (in.chance()) c.vision = vision_of(in);
  return c;
}

static AdapterConfig adapter_of(Input& in, const ModelConfig& config) {
  AdapterConfig adapter;
  adapter.layers.resize(size_t(config.layers));
  for (int64_t layer = 0; layer < std::min<int64_t>(config.layers, 16); layer++) {
    for (AdapterPair& pair : adapter.layers[size_t(layer)]) pair = {in.number<int32_t>(5), 1};
  }
  constexpr const char* names[] = {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight", "model.layers.0.mlp.down_proj.weight"};
  for (const char* name : names) {
    if (in.chance()) adapter.whole.insert(name);
  }
  adapter.tied = in.chance();
  adapter.check();
  return adapter;
}

static EngineOptions options_of(Input& in) {
  EngineOptions options;
  options.micro_batch_tokens = in.chance() ? 8 : std::max<int64_t>(1, in.take<uint32_t>() >> 1);
  options.longest_row = in.chance() ? 0 : in.take<uint32_t>() >> 1;
  options.cache_bytes = in.chance() ? 1 << 16 : int64_t(in.take<uint64_t>() >> 11);
  options.step_tokens = 0;
  options.choose_recompute = in.chance();
  options.recompute = Recompute(in.below(4));
  options.moments = in.chance() ? Type::bf16 : Type::f32;
  options.share_prefixes = in.chance();
  return options;
}

static void require(bool ok) {
  if (!ok) std::abort();
}

static void check(const FittedEngine& fitted, int64_t available) {
  const MemoryPlan& p = fitted.plan;
  for (const int64_t bytes : {p.weights, p.packed, p.gradients, p.moments, p.reference, p.critic, p.activations, p.longest, p.cache, p.sampling, p.vision, p.scratch})
    require(bytes >= 0);
  require(p.total() >= 0 && p.total() <= available);
}

// An engine of a model that is small in every respect computes something.
static void pass(Input& in, const ModelConfig& config, const FittedEngine& fitted) {
  const bool small = config.layers <= 8 && config.weight_products() < 1 << 16 && config.max_positions <= 1 << 12 && !config.vision;
  if (!small || fitted.plan.total() > int64_t{8} << 20) return;
  Engine engine(make_cpu_device(1), config, fitted.options);
  std::vector<int32_t> tokens;
  for (int count = 1 + in.below(6); count > 0; count--) tokens.push_back(in.number<int32_t>(4));
  engine.logits(tokens);
}

}  // namespace gigpo::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gigpo;
  test::Input in(data, size);
  try {
    const ModelConfig config = test::model_of(in);
    config.check();
    EngineOptions options = test::options_of(in);
    if (in.chance()) options.adapter = test::adapter_of(in, config);
    if (config.vision && config.vision->trained && options.adapter) return 0;  // the binding refuses both
    const Purpose purpose{in.chance(), in.chance(), in.chance()};
    const Type type = in.chance() ? Type::bf16 : Type::f32;
    const bool cuda = in.chance();
    const int64_t available = in.chance() ? (int64_t{1} << 53) - 1 : int64_t{1} << in.below(53);
    const FittedEngine fitted = fit_options(config, options, cuda ? cuda_traits(type) : cpu_traits(type, 1), purpose, available);
    test::check(fitted, available);
    if (!cuda && type == Type::f32) test::pass(in, config, fitted);
  } catch (const Error&) {
  }
  return 0;
}
