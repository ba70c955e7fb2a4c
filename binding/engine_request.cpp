#include "binding/engine_request.h"

#include "binding/convert.h"
#include "binding/environment.h"
#include "core/memory_plan.h"

namespace gigpo {

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
  c.rope_theta = number(model, "ropeTheta");
  const Napi::Value scaling = model.Get("ropeScaling");
  if (scaling.IsObject()) {
    const auto s = scaling.As<Napi::Object>();
    c.rope_scaling = {number(s, "factor"), number(s, "lowFrequencyFactor"), number(s, "highFrequencyFactor"),
                      number(s, "originalMaxPositions")};
  }
  c.tie_embeddings = boolean(model, "tieEmbeddings");
  c.query_key_value_bias = boolean(model, "queryKeyValueBias");
  c.query_key_norm = boolean(model, "queryKeyNorm");
  return c;
}

static Type number_type(const Napi::Object& object, const char* name) {
  return choice<Type>(object, name, {{"float32", Type::f32}, {"bfloat16", Type::bf16}});
}

static EngineOptions given_options(const Napi::Object& object) {
  EngineOptions options;
  options.micro_batch_tokens = integer(object, "microBatchTokens");
  options.longest_row = integer(object, "longestRow");
  options.cache_bytes = integer(object, "cacheBytes");
  options.step_tokens = 0;
  const auto recompute = choice<std::optional<Recompute>>(object, "recompute",
                                                          {{"auto", std::nullopt},
                                                           {"none", Recompute::none},
                                                           {"norms", Recompute::norms},
                                                           {"mlp", Recompute::mlp},
                                                           {"block", Recompute::block}});
  options.choose_recompute = !recompute;
  options.recompute = recompute.value_or(Recompute::none);
  options.moments = number_type(object, "moments");
  options.adapter = {integer(object, "loraRank"), number(object, "loraAlpha")};
  return options;
}

EngineRequest::EngineRequest(const Napi::Object& model, const Napi::Object& object)
    : config(model_config(model)),
      cuda(choice<bool>(object, "device", {{"cpu", false}, {"cuda", true}})),
      precision(number_type(object, "precision")),
      threads(int(integer(object, "threads"))),
      options(given_options(object)),
      purpose{boolean(object, "trained"), boolean(object, "reference"), boolean(object, "critic")} {}

OpenedEngine open_engine(const EngineRequest& request) {
  auto device = request.cuda ? make_cuda_device({request.precision}) : make_cpu_device(request.threads);
  auto [options, plan] = request.fitted(int64_t(device->available()));
  plan.without_library = device->without_library();
  return {std::make_unique<Engine>(std::move(device), request.config, options), plan};
}

Napi::Object to_object(Napi::Env env, const MemoryPlan& plan) {
  const Napi::Object result = Napi::Object::New(env);
  result.Set("weights", double(plan.weights));
  result.Set("gradients", double(plan.gradients));
  result.Set("moments", double(plan.moments));
  result.Set("reference", double(plan.reference));
  result.Set("critic", double(plan.critic));
  result.Set("activations", double(plan.activations));
  result.Set("cache", double(plan.cache));
  result.Set("sampling", double(plan.sampling));
  result.Set("shared", plan.shared);
  constexpr const char* levels[] = {"none", "norms", "mlp", "block"};
  result.Set("recompute", levels[int(plan.recompute)]);
  result.Set("total", double(plan.total()));
  result.Set("longestRow", double(plan.longest_row));
  if (!plan.without_library.empty()) result.Set("withoutLibrary", plan.without_library);
  result.Set("text", describe(plan));
  return result;
}

Napi::Value memory_plan_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const EngineRequest request(info[0].As<Napi::Object>(), info[1].As<Napi::Object>());
  const int64_t available = info[2].As<Napi::Number>().Int64Value();
  return guarded(env, [&] { return to_object(env, request.fitted(available).plan); });
}

}  // namespace gigpo
