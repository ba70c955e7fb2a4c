#include "binding/engine_request.h"

#include "binding/convert.h"
#include "binding/environment.h"
#include "core/memory_plan.h"

namespace gigpo {

static int64_t whole_within(const Napi::Object& object, const char* name, int64_t least, int64_t most) {
  const int64_t value = integer(object, name);
  if (value >= least && value <= most) return value;
  refuse(std::string(name) + " must be between " + std::to_string(least) + " and " + std::to_string(most) + ".");
}
static RopeScaling rope_scaling(const Napi::Value& value) {
  if (!value.IsObject()) return {};
  const auto s = value.As<Napi::Object>();
  const double factor = number(s, "factor"), original = number(s, "originalMaxPositions");
  if (choice<bool>(s, "type", {{"llama3", false}, {"yarn", true}}))
    return YarnScaling{factor, number(s, "attentionFactor"), number(s, "betaFast"), number(s, "betaSlow"), original, boolean(s, "truncate")};
  return Llama3Scaling{factor, number(s, "lowFrequencyFactor"), number(s, "highFrequencyFactor"), original};
}

// Parses `layerTable`, up to one entry more than there are layers.
static std::vector<LayerKind> layer_kinds(const Napi::Value& value, int64_t layers) {
  if (!value.IsArray()) return {};
  const auto list = value.As<Napi::Array>();
  std::vector<LayerKind> kinds;
  for (uint32_t i = 0; i < list.Length() && i <= layers; i++) {
    const Napi::Object entry = object(list.Get(i), "An entry of layerTable");
    const bool turned = entry.Get("rope").IsNumber();
    kinds.push_back({integer(entry, "window"), turned ? int(whole_within(entry, "rope", 0, INT32_MAX)) : LayerKind::none});
  }
  return kinds;
}

// Converts what differs from the usual form of the layers; everything may be missing.
static void read_layer_form(const Napi::Object& model, ModelConfig& c) {
  const auto given = [&](const char* name) { return !model.Get(name).IsUndefined(); };
  if (given("gate")) c.gate = choice<Gate>(model, "gate", {{"silu", Gate::silu}, {"gelu_tanh", Gate::gelu_tanh}});
  if (given("normOffset")) c.norm_offset = float(whole_within(model, "normOffset", 0, 1));
  if (given("branchNorms")) c.branch_norms = boolean(model, "branchNorms");
  if (given("embeddingScale")) c.embedding_scale = number(model, "embeddingScale");
  if (given("queryScalar")) c.query_scalar = number(model, "queryScalar");
}

// Rotary tables: that of the model, then `otherRotary`, which may be missing.
static std::vector<RotaryTable> rotary_tables(const Napi::Object& model) {
  const auto table = [](const Napi::Object& from) {
    return RotaryTable{number(from, "ropeTheta"), rope_scaling(from.Get("ropeScaling"))};
  };
  std::vector<RotaryTable> tables = {table(model)};
  const Napi::Value others = model.Get("otherRotary");
  for (uint32_t i = 0; others.IsArray() && i < others.As<Napi::Array>().Length(); i++)
    tables.push_back(table(object(others.As<Napi::Array>().Get(i), "An entry of otherRotary")));
  return tables;
}

// Converts a NativeVision of src/native/model.ts.
static VisionConfig vision_config(const Napi::Object& from) {
  VisionConfig c{};
  const auto list = [&](const char* name) {
    std::vector<int64_t> numbers;
    const Napi::Value value = from.Get(name);
    for (uint32_t i = 0; value.IsArray() && i < value.As<Napi::Array>().Length(); i++)
      numbers.push_back(integer(value.As<Napi::Array>().Get(i), name));
    return numbers;
  };
  const auto optional = [&](const char* name) { return from.Get(name).IsUndefined() ? 0 : whole_within(from, name, 1, INT32_MAX); };
  c.kind = choice<VisionConfig::Kind>(from, "kind", {{"qwen2.5-vl", VisionConfig::Kind::qwen2_5}, {"siglip", VisionConfig::Kind::siglip}});
  c.hidden_size = integer(from, "hiddenSize");
  c.intermediate_size = integer(from, "intermediateSize");
  c.layers = integer(from, "layers");
  c.heads = integer(from, "heads");
  c.channels = integer(from, "channels");
  c.patch_size = integer(from, "patchSize");
  c.frames = integer(from, "frames");
  c.merge = integer(from, "merge");
  c.window = optional("window");
  c.full_layers = list("fullLayers");
  c.side = optional("tileSide");
  c.epsilon = number(from, "epsilon");
  c.image_token = int32_t(whole_within(from, "imageToken", 0, INT32_MAX));
  c.sections = list("sections");
  return c;
}

// Converts a NativeModel of src/native/model.ts.
static ModelConfig model_config(const Napi::Object& model) {
  ModelConfig c{};
  c.vocabulary_size = integer(model, "vocabularySize");
  c.hidden_size = integer(model, "hiddenSize");
  c.intermediate_size = integer(model, "intermediateSize");
  c.layers = integer(model, "layers");
  c.heads = integer(model, "heads");
  c.key_value_heads = integer(model, "keyValueHeads");
  c.head_size = integer(model, "headSize");
  c.max_positions = integer(model, "maxPositions");
  c.rms_norm_epsilon = number(model, "rmsNormEpsilon");
  c.rotary = rotary_tables(model);
  c.kinds = layer_kinds(model.Get("layerTable"), c.layers);
  c.tie_embeddings = boolean(model, "tieEmbeddings");
  c.query_key_value_bias = boolean(model, "queryKeyValueBias");
  c.query_key_norm = boolean(model, "queryKeyNorm");
  read_layer_form(model, c);
  if (const Napi::Value vision = model.Get("vision"); vision.IsObject()) c.vision = vision_config(vision.As<Napi::Object>());
  c.check();
  return c;
}

static Type number_type(const Napi::Object& object, const char* name) {
  return choice<Type>(object, name, {{"float32", Type::f32}, {"bfloat16", Type::bf16}});
}

// Converts a NativeAdapter of src/native.ts.
static AdapterConfig adapter_config(const Napi::Object& object, int64_t layers) {
  AdapterConfig adapter;
  adapter.layers.resize(layers);
  const int32_t* ranks = elements<int32_t>(object.Get("ranks"), "ranks", layers * Projection::count);
  const double* scales = elements<double>(object.Get("scales"), "scales", layers * Projection::count);
  for (int64_t i = 0; i < layers * Projection::count; i++) {
    adapter.layers[i / Projection::count][i % Projection::count] = {ranks[i], float(scales[i])};
  }
  const Napi::Value whole = object.Get("whole");
  if (!whole.IsArray()) refuse("whole must be a list.");
  for (uint32_t i = 0; i < whole.As<Napi::Array>().Length(); i++) {
    const Napi::Value name = whole.As<Napi::Array>().Get(i);
    if (!name.IsString()) refuse("whole must be a list of names.");
    adapter.whole.insert(name.As<Napi::String>());
  }
  adapter.tied = boolean(object, "tied");
  adapter.check();
  return adapter;
}

using HeldReplicas = Napi::External<std::shared_ptr<Replicas>>;

Napi::Value replicas_call(const Napi::CallbackInfo& info) {
  const int64_t count = integer(info[0], "count");
  if (count < 1 || count > 1024) refuse("count must be between 1 and 1024.");
  return HeldReplicas::New(info.Env(), new std::shared_ptr<Replicas>(std::make_shared<Replicas>(int(count))),
                           [](Napi::BasicEnv, std::shared_ptr<Replicas>* held) { delete held; });
}

static Replica replica_of(const Napi::Object& options) {
  const Napi::Value all = options.Get("replicas");
  if (all.IsUndefined()) return {};
  if (!all.IsExternal()) refuse("replicas must be a result of replicas().");
  const std::shared_ptr<Replicas> held = *all.As<HeldReplicas>().Data();
  return {held, int(whole_within(options, "rank", 0, held->count() - 1))};
}

static EngineOptions given_options(const Napi::Object& object, int64_t layers) {
  EngineOptions options;
  options.micro_batch_tokens = whole_within(object, "microBatchTokens", 1, INT32_MAX);
  options.longest_row = whole_within(object, "maxTrainTokens", 0, INT32_MAX);
  options.cache_bytes = whole_within(object, "kvCacheBytes", 0, (int64_t{1} << 53) - 1);
  options.step_tokens = 0;
  const auto recompute = choice<std::optional<Recompute>>(object, "recompute",
                                                          {{"auto", std::nullopt},
                                                           {"none", Recompute::none},
                                                           {"norms", Recompute::norms},
                                                           {"mlp", Recompute::mlp},
                                                           {"block", Recompute::block}});
  options.choose_recompute = !recompute;
  options.recompute = recompute.value_or(Recompute::none);
  options.moments = number_type(object, "optimizerPrecision");
  if (const Napi::Value adapter = object.Get("adapter"); adapter.IsObject()) options.adapter = adapter_config(adapter.As<Napi::Object>(), layers);
  options.share_prefixes = boolean(object, "sharePrefixes");
  options.replica = replica_of(object);
  return options;
}

EngineRequest::EngineRequest(const Napi::Object& model, const Napi::Object& object)
    : config(model_config(model)),
      cuda(choice<bool>(object, "device", {{"cpu", false}, {"cuda", true}})),
      gpu(object.Get("gpu").IsUndefined() ? -1 : int(whole_within(object, "gpu", 0, 1 << 16))),
      precision(number_type(object, "precision")),
      threads(int(whole_within(object, "threads", 0, INT32_MAX))),
      cublas_samples(boolean(object, "sampleWithCublas")),
      options(given_options(object, config.layers)),
      purpose{boolean(object, "trained"), boolean(object, "reference"), boolean(object, "critic")} {
  if (!config.vision) return;
  config.vision->trained = boolean(object, "trainVision");
  if (config.vision->trained && options.adapter) refuse("The vision tower is not trained beside an adapter: leave trainVision or lora out.");
}

OpenedEngine open_engine(const EngineRequest& request) {
  auto device = request.cuda ? make_cuda_device({.precision = request.precision, .cublas_samples = request.cublas_samples, .index = request.gpu})
                             : make_cpu_device(request.threads, request.precision);
  // All replicas have the same sizes, and so the same shares of a batch.
  auto available = int64_t(device->available());
  if (const Replica& replica = request.options.replica) available = replica.all->least(replica.rank, available);
  auto [options, plan] = request.fitted(available);
  plan.without_library = device->without_library();
  plan.library = device->library();
  return {std::make_unique<Engine>(std::move(device), request.config, options), plan};
}

Napi::Object to_object(Napi::Env env, const MemoryPlan& plan) {
  const Napi::Object result = Napi::Object::New(env);
  result.Set("weights", double(plan.weights));
  result.Set("packed", double(plan.packed));
  result.Set("gradients", double(plan.gradients));
  result.Set("moments", double(plan.moments));
  result.Set("reference", double(plan.reference));
  result.Set("critic", double(plan.critic));
  result.Set("activations", double(plan.activations));
  result.Set("longestActivations", double(plan.longest));
  result.Set("cache", double(plan.cache));
  result.Set("sampling", double(plan.sampling));
  result.Set("vision", double(plan.vision));
  result.Set("scratch", double(plan.scratch));
  result.Set("shared", plan.shared);
  constexpr const char* levels[] = {"none", "norms", "mlp", "block"};
  result.Set("recompute", levels[int(plan.recompute)]);
  result.Set("total", double(plan.total()));
  result.Set("maxTrainTokens", double(plan.longest_row));
  result.Set("available", double(plan.available));
  if (!plan.without_library.empty()) result.Set("withoutLibrary", plan.without_library);
  if (!plan.library.empty()) result.Set("library", plan.library);
  result.Set("text", describe(plan));
  return result;
}

Napi::Value memory_plan_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const EngineRequest request(object(info[0], "The model"), object(info[1], "The options"));
  return to_object(env, request.fitted(integer(info[2], "availableBytes")).plan);
}

}  // namespace gigpo
