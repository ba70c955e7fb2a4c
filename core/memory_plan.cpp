#include "core/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"

namespace gigpo {

namespace {

// Hands out addresses, does nothing, and counts.
class DryDevice final : public Device {
 public:
  explicit DryDevice(const DeviceTraits& traits) : traits_(traits) {}

  int64_t bytes = 0;

  DeviceTraits traits() const override { return traits_; }
  void* allocate(size_t count) override {
    bytes += int64_t(count);
    return reinterpret_cast<void*>(uintptr_t{1} << 40);
  }
  void release(void*) override {}
  void upload(void*, const void*, size_t) override {}
  void download(void*, const void*, size_t) override {}
  void zero(void*, size_t) override {}
  void copy(Tensor, Tensor) override {}
  size_t available() const override { return SIZE_MAX; }
  void matmul(Tensor, bool, Tensor, bool, Tensor, bool) override {}
  void linear(Tensor, Tensor, Tensor, Tensor, Tensor) override {}
  void weights_changed() override {}
  void bias_backward(Tensor, Tensor) override {}
  void scale(Tensor, float) override {}
  void gather(const int32_t*, Tensor, Tensor) override {}
  void scatter_add(const RowScatter&, Tensor, Tensor) override {}
  void rms_norm(Tensor, Tensor, int64_t, float, Tensor, float*) override {}
  void rms_norm_backward(Tensor, Tensor, Tensor, int64_t, const float*, Tensor, bool, Tensor) override {}
  void rotate(Tensor, int64_t, const Rotary&, bool) override {}
  void attention(Tensor, Tensor, Tensor, int64_t, const PackedRows&, Tensor, float*) override {}
  void attention_backward(Tensor, Tensor, Tensor, Tensor, Tensor, const float*, int64_t, const PackedRows&, Tensor, Tensor,
                          Tensor) override {}
  using Device::paged_attention;
  void paged_attention(Tensor, Tensor, Tensor, int64_t, const PagedBatch&, const PagedCache&, Tensor) override {}
  void swiglu(Tensor, Tensor) override {}
  void swiglu_backward(Tensor, Tensor, Tensor) override {}
  void policy_head(Tensor, const PolicyHeadRow*, const PolicyHeadOptions&, PolicyHeadResult*) override {}
  void value_head(Tensor, Tensor, const ValueHeadRow*, const ValueHeadOptions&, ValueHeadResult*, Tensor, Tensor) override {}
  void sample(Tensor, const SampleInputs&, int32_t*, float*) override {}
  double squared_norm(const float*, int64_t) override { return 0; }
  void adamw(const AdamWBuffers&, const AdamW&) override {}

 private:
  DeviceTraits traits_;
};

// Trains rows whose every token is sampled: the most that the policy's head can be asked for, beside which a critic's is small.
void train_largest_micro_batch(Engine& engine, int64_t tokens, int64_t longest) {
  std::vector<int32_t> offsets{0}, rows, begins, counts, all;
  for (int64_t left = tokens; left > 0; left -= counts.back()) {
    rows.push_back(int32_t(rows.size()));
    begins.push_back(1);
    counts.push_back(int32_t(std::min(left, longest)));
    all.push_back(rows.back() % int32_t(engine.transformer().config().vocabulary_size));
    all.insert(all.end(), counts.back(), 0);
    offsets.push_back(int32_t(all.size()));
  }
  const TrainingBatch batch{int64_t(rows.size()), int64_t(rows.size()), all.data(), offsets.data(), rows.data(), begins.data(), counts.data()};
  const std::atomic<bool> cancelled = false;
  engine.trainer().forward_backward(engine.policy(), batch, {}, cancelled);
}

// A micro-batch is played through up to this size. The plan itself must not take memory in proportion to what is planned.
constexpr int64_t most_played = 16384;

// Each further token takes as much as the one before it, so two micro-batches tell of any that is larger; but for logits, of which
// there is only ever one chunk, whose rows beyond those of the device that was played on are `more_logits`.
int64_t activation_bytes(Engine& engine, int64_t tokens, int64_t longest, int64_t more_logits) {
  const auto played = [&](int64_t count) {
    train_largest_micro_batch(engine, count, longest);
    return int64_t(engine.trainer().peak_bytes());
  };
  if (tokens <= most_played) return played(tokens);
  const int64_t half = played(most_played / 2), all = played(most_played);
  const double per_token = double(all - half) / (most_played - most_played / 2);
  return all + int64_t(per_token * double(tokens - most_played)) + more_logits;
}

// A step of as many tokens as may be, from as many sequences as are usual at once. An arena grows by halves until it has seen the
// largest step.
int64_t sampling_bytes(Device& device, const Transformer& transformer, const EngineOptions& options) {
  constexpr int64_t most_sequences = 256;
  const ModelConfig& config = transformer.config();
  PagedTokens batch;
  batch.tokens.assign(options.step_tokens, 0);
  batch.positions = batch.sequences = batch.tokens;
  batch.wanted.assign(std::min(options.step_tokens, most_sequences), 0);
  batch.table_stride = (config.max_positions + PagedCache::page_size - 1) / PagedCache::page_size;
  batch.page_tables.assign(most_sequences * batch.table_stride, 0);
  Arena arena(device);
  Arena::Bundle bundle;
  PagedTokens::Uploaded uploaded{};
  batch.add_to(bundle, uploaded);
  bundle.upload(arena);
  PolicyTensors weights{{&arena, device.activation_type(), 1, 0, 0}, {}};
  if (transformer.adapted()) weights.adapter = weights.model;
  transformer.forward_paged(weights, uploaded, std::vector<PagedCache>(config.layers), arena);
  transformer.logits(int64_t(batch.wanted.size()), arena);
  return int64_t(arena.peak()) * 3 / 2;
}

std::string size_text(int64_t bytes) {
  char text[32];
  const double giga = double(bytes) / 1e9;
  std::snprintf(text, sizeof text, giga < 0.1 ? "%.0f MB" : "%.1f GB", giga < 0.1 ? giga * 1e3 : giga);
  return text;
}

}  // namespace

MemoryPlan plan_memory(const ModelConfig& config, const EngineOptions& options, const DeviceTraits& traits, const Purpose& purpose) {
  const int64_t tokens = std::max(options.micro_batch_tokens, std::min(options.longest_row, config.max_positions - 1));
  const int64_t played = std::min(tokens, most_played);
  DeviceTraits playing = traits;
  if (tokens > played) playing.head_logits = 0;  // the fewest rows at a time, however many there are
  auto owned = std::make_unique<DryDevice>(playing);
  DryDevice& device = *owned;
  ModelConfig quick = config;  // only as many positions as are used here: their table takes time
  quick.max_positions = std::min(config.max_positions, played + 1);
  EngineOptions apart = options;
  apart.micro_batch_tokens = played;
  apart.region_bytes = 0;
  apart.cache_bytes = 0;
  Engine engine(std::move(owned), quick, apart);

  MemoryPlan plan;
  const Transformer& transformer = engine.transformer();
  const int64_t of_type = bytes_of(traits.activation_type), exact = traits.activation_type == Type::f32 ? 0 : 4;
  const auto tables = [](const ModelConfig& of) { return of.max_positions * of.head_size * int64_t{sizeof(float)}; };
  plan.weights = transformer.layout().size * (of_type + (options.adapter ? 0 : exact)) + tables(config);
  if (options.adapter) plan.weights += transformer.trained_size() * (of_type + exact);
  if (purpose.reference) plan.reference = transformer.trained_size() * of_type;
  plan.sampling = sampling_bytes(device, transformer, options);
  plan.cache = std::max(options.cache_bytes, cache_bytes_per_token(config, traits.activation_type) * 4 * PagedCache::page_size);
  if (purpose.trained) {
    const auto measured = [&](auto allocate) {
      const int64_t before = device.bytes;
      allocate();
      return device.bytes - before;
    };
    plan.gradients = measured([&] { engine.trainer().gradients(); });
    plan.moments = measured([&] { engine.trainer().first_moment(), engine.trainer().second_moment(); });
    if (purpose.critic) {
      plan.critic = tables(config) - tables(quick) + measured([&] {
        Trainer& trainer = engine.critic().trainer();
        trainer.gradients(), trainer.first_moment(), trainer.second_moment();
      });
    }
    const int64_t vocabulary = config.vocabulary_size;
    const int64_t more_rows = std::min(tokens, traits.head_rows(vocabulary)) - playing.head_rows(vocabulary);
    plan.activations = activation_bytes(engine, tokens, quick.max_positions - 1, more_rows * vocabulary * bytes_of(Type::f32));
  }
  plan.shared = traits.one_region;
  plan.recompute = options.recompute;
  return plan;
}

std::string describe(const MemoryPlan& plan) {
  std::string text = "weights " + size_text(plan.weights);
  const auto add = [&](const char* name, int64_t bytes) {
    if (bytes > 0) text += std::string(", ") + name + " " + size_text(bytes);
  };
  add("gradients", plan.gradients);
  add("moments", plan.moments);
  add("reference", plan.reference);
  add("critic", plan.critic);
  add(plan.shared ? "activations, in the cache's place," : "activations", plan.activations);
  constexpr const char* levels[] = {"", " (recompute: norms)", " (recompute: mlp)", " (recompute: block)"};
  if (plan.activations > 0) text += levels[int(plan.recompute)];
  add("cache", plan.cache);
  add("sampling", plan.sampling);
  return text + ", together " + size_text(plan.total());
}

DeviceTraits cuda_traits(Type precision) {
  // 4,096 rows of Qwen's vocabulary: 2.5 GB of logits, so that adding up dW in fp32 is a small part of each chunk's work.
  return {precision, int64_t{4096} * 151936, 4096, true};
}

// Throws OUT_OF_MEMORY with what would fit.
static void refuse(const ModelConfig& config, const EngineOptions& options, const DeviceTraits& device, const Purpose& purpose,
                   int64_t available) {
  const auto plan_of = [&](const EngineOptions& other) { return plan_memory(config, other, device, purpose); };
  const MemoryPlan plan = plan_of(options);
  // The cheapest first: what costs no accuracy, then what costs a little.
  struct Remedy {
    const char* setting;
    void (*apply)(EngineOptions&);
  };
  const Remedy remedies[] = {
      {"cacheBytes: 1 GiB", [](EngineOptions& o) { o.cache_bytes = std::min(o.cache_bytes, int64_t{1} << 30); }},
      {"recompute: \"norms\"", [](EngineOptions& o) { o.recompute = std::max(o.recompute, Recompute::norms); }},
      {"recompute: \"mlp\"", [](EngineOptions& o) { o.recompute = std::max(o.recompute, Recompute::mlp); }},
      {"recompute: \"block\"", [](EngineOptions& o) { o.recompute = Recompute::block; }},
      {"microBatchTokens: 4096", [](EngineOptions& o) { o.micro_batch_tokens = std::min<int64_t>(o.micro_batch_tokens, 4096); }},
      {"longestRow: 4096", [](EngineOptions& o) { o.longest_row = std::min<int64_t>(o.longest_row, 4096); }},
      {"moments: \"bfloat16\"", [](EngineOptions& o) { o.moments = Type::bf16; }},
      {"lora: { rank: 32 }", [](EngineOptions& o) { if (!o.adapter) o.adapter = {32, 64}; }},
  };
  std::string needed = "This needs " + describe(plan) + ", but " + size_text(available) + " are free. ";
  EngineOptions tried = options;
  std::string settings;
  for (const Remedy& remedy : remedies) {
    if (!purpose.trained && std::string_view(remedy.setting).find("cacheBytes") == std::string_view::npos) continue;
    const MemoryPlan before = plan_of(tried);
    remedy.apply(tried);
    const MemoryPlan after = plan_of(tried);
    if (after.total() == before.total()) continue;
    const std::string_view name(remedy.setting);
    if (name.starts_with("recompute") && settings.find("recompute") != std::string::npos) {
      settings.resize(settings.find("recompute"));  // a stronger level replaces the one before
    } else if (!settings.empty()) {
      settings += ", ";
    }
    settings += name;
    if (after.total() <= available) {
      throw Error("OUT_OF_MEMORY", needed + "It would fit with " + settings + " (" + size_text(after.total()) + ").");
    }
  }
  throw Error("OUT_OF_MEMORY", needed + "Take a smaller model or a larger device" +
                                   (settings.empty() ? "." : ": even with " + settings + " it does not fit."));
}

FittedEngine fit_options(const ModelConfig& config, EngineOptions options, const DeviceTraits& device, const Purpose& purpose,
                         int64_t available) {
  constexpr int64_t small_cache = int64_t{256} << 20, sequences = 256, usual_length = 4096;
  if (options.step_tokens == 0) options.step_tokens = device.step_tokens;
  const bool choose_cache = options.cache_bytes == 0;
  if (choose_cache) options.cache_bytes = small_cache;
  MemoryPlan plan = plan_memory(config, options, device, purpose);
  if (options.choose_recompute && purpose.trained) {
    for (const Recompute level : {Recompute::norms, Recompute::mlp, Recompute::block}) {
      if (plan.total() <= available) break;
      options.recompute = level;
      plan = plan_memory(config, options, device, purpose);
    }
  }
  if (plan.total() > available) refuse(config, options, device, purpose, available);
  int64_t room = available - plan.total() + plan.activations;  // for activations
  if (device.one_region) {
    const int64_t shared = available - plan.total() + std::max(plan.activations, plan.cache);
    if (choose_cache) {  // for many sequences at once, as far as there is room
      const int64_t wanted = sequences * std::min(config.max_positions, usual_length) * cache_bytes_per_token(config, device.activation_type);
      options.cache_bytes = plan.cache = std::min(shared, std::max(wanted, plan.activations));
    }
    room = options.region_bytes = std::max(options.cache_bytes, plan.activations);
  }
  if (!purpose.trained) return {options, plan};
  if (options.longest_row == 0) {  // activations grow no faster than tokens
    options.longest_row = int64_t(double(options.micro_batch_tokens) * std::min(double(room) / double(plan.activations), 1e6));
  }
  plan.longest_row = std::min(std::max(options.longest_row, options.micro_batch_tokens), config.max_positions);
  return {options, plan};
}

}  // namespace gigpo
