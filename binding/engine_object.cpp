#include "binding/engine_object.h"

#include "binding/convert.h"
#include "binding/environment.h"
#include "binding/half.h"
#include "core/initialize.h"

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

static Key key_of(const Napi::Value& value) {
  const auto words = value.As<Napi::Array>();
  return {words.Get(0u).As<Napi::Number>().Uint32Value(), words.Get(1u).As<Napi::Number>().Uint32Value()};
}

static std::vector<TrainingRow> training_rows(const Napi::Object& object) {
  const auto tokens = typed_array<int32_t>(object.Get("tokens"));
  const auto lengths = copy_of<int32_t>(object.Get("lengths")), replies = copy_of<int32_t>(object.Get("replyLengths"));
  const auto advantages = copy_of_optional<float>(object, "advantages");
  const auto log_probs = copy_of_optional<float>(object, "logProbs");
  const auto reference = copy_of_optional<float>(object, "referenceLogProbs");
  const auto gradients = copy_of_optional<float>(object, "gradients");
  std::vector<TrainingRow> rows(lengths.size());
  int64_t token = 0, reply = 0;
  for (size_t r = 0; r < rows.size(); r++) {
    TrainingRow& row = rows[r];
    const auto part = [&](const std::vector<float>& values) {
      return values.empty() ? std::vector<float>{}
                            : std::vector<float>(values.begin() + reply, values.begin() + reply + replies[r]);
    };
    row.tokens.assign(tokens.Data() + token, tokens.Data() + token + lengths[r]);
    row.reply = replies[r];
    row.advantage = advantages.empty() ? 0 : advantages[r];
    row.old_log_probs = part(log_probs);
    row.reference_log_probs = part(reference);
    row.gradients = part(gradients);
    token += lengths[r];
    reply += replies[r];
  }
  return rows;
}

static float* buffer_of(Engine& engine, const std::string& name) {
  if (name == "gradients") return engine.trainer().gradients();
  if (name == "firstMoment") return engine.trainer().first_moment();
  if (name == "secondMoment") return engine.trainer().second_moment();
  return engine.weights();
}

static MakeResult nothing() {
  return [](Napi::Env env) { return env.Undefined(); };
}

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(env, "Engine",
                     {InstanceAccessor<&EngineObject::parameters>("parameters"),
                      InstanceAccessor<&EngineObject::statistics>("statistics"),
                      InstanceAccessor<&EngineObject::steps, &EngineObject::set_steps>("steps"),
                      InstanceMethod<&EngineObject::initialize>("initialize"),
                      InstanceMethod<&EngineObject::write>("write"), InstanceMethod<&EngineObject::read>("read"),
                      InstanceMethod<&EngineObject::freeze_reference>("freezeReference"),
                      InstanceMethod<&EngineObject::sample>("sample"),
                      InstanceMethod<&EngineObject::logits>("logits"),
                      InstanceMethod<&EngineObject::log_probs>("logProbs"),
                      InstanceMethod<&EngineObject::forward_backward>("forwardBackward"),
                      InstanceMethod<&EngineObject::optimizer_step>("optimizerStep"),
                      InstanceMethod<&EngineObject::clear_gradients>("clearGradients"),
                      InstanceMethod<&EngineObject::dispose>("dispose")});
}

EngineObject::EngineObject(const Napi::CallbackInfo& info)
    : ObjectWrap(info), layout_(model_config(info[0].As<Napi::Object>())) {
  const Napi::Env env = info.Env();
  const auto options = info[1].As<Napi::Object>();
  guarded(env, [&] {
    auto engine = std::make_unique<Engine>(
        model_config(info[0].As<Napi::Object>()),
        EngineOptions{int(integer(options, "threads")), integer(options, "microBatchTokens"), integer(options, "cacheBytes")});
    counts_ = engine->generator().counts();
    thread_ = EngineThread::create(env, std::move(engine));
    return env.Undefined();
  });
  external_bytes_ = layout_.size * int64_t{sizeof(float)};
  Napi::MemoryManagement::AdjustExternalMemory(env, external_bytes_);
}

EngineObject::~EngineObject() {
  if (thread_) thread_->request_stop();
}

void EngineObject::Finalize(Napi::BasicEnv env) { Napi::MemoryManagement::AdjustExternalMemory(env, -external_bytes_); }

void EngineObject::refuse_disposed(Napi::Env env) const {
  if (disposed_) throw make_error(env, "DISPOSED", "This policy was disposed of: open it again.");
}

Napi::Value EngineObject::start(const Napi::CallbackInfo& info, Work work) {
  refuse_disposed(info.Env());
  return thread_->start(info.Env(), std::move(work));
}

Napi::Value EngineObject::parameters(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Array result = Napi::Array::New(env);
  for (uint32_t i = 0; i < layout_.parameters.size(); i++) {
    const Parameter& parameter = layout_.parameters[i];
    const Napi::Object item = Napi::Object::New(env);
    const Napi::Array shape = Napi::Array::New(env);
    for (uint32_t d = 0; d < parameter.shape.size(); d++) shape.Set(d, double(parameter.shape[d]));
    item.Set("name", parameter.name);
    item.Set("shape", shape);
    result.Set(i, item);
  }
  return result;
}

Napi::Value EngineObject::initialize(const Napi::CallbackInfo& info) {
  const Key key = key_of(info[0]);
  const double deviation = info[1].As<Napi::Number>().DoubleValue();
  return start(info, [=](Engine& engine, const std::atomic<bool>&) {
    std::vector<float> weights(engine.layout().size);
    gigpo::initialize(engine.config(), engine.layout(), deviation, key, weights.data());
    engine.device().upload(engine.weights(), weights.data(), weights.size() * sizeof(float));
    engine.weights_changed();
    return nothing();
  });
}

Napi::Value EngineObject::write(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>(), type = info[4].As<Napi::String>();
  const int64_t offset = layout_.parameters.at(info[1].As<Napi::Number>().Uint32Value()).offset +
                         info[2].As<Napi::Number>().Int64Value();
  std::vector<uint8_t> bytes = copy_of<uint8_t>(info[3]);
  return start(info, [=, bytes = std::move(bytes)](Engine& engine, const std::atomic<bool>&) {
    const std::vector<float> values = to_floats(bytes, type);
    engine.device().upload(buffer_of(engine, name) + offset, values.data(), values.size() * sizeof(float));
    engine.weights_changed();
    return nothing();
  });
}

Napi::Value EngineObject::read(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>();
  const int64_t offset = layout_.parameters.at(info[1].As<Napi::Number>().Uint32Value()).offset +
                         info[2].As<Napi::Number>().Int64Value();
  const int64_t count = info[3].As<Napi::Number>().Int64Value();
  return start(info, [=](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    std::vector<float> values(count);
    engine.device().download(values.data(), buffer_of(engine, name) + offset, count * sizeof(float));
    return [values = std::move(values)](Napi::Env env) { return to_array(env, values); };
  });
}

Napi::Value EngineObject::freeze_reference(const Napi::CallbackInfo& info) {
  return start(info, [](Engine& engine, const std::atomic<bool>&) {
    engine.freeze_reference();
    return nothing();
  });
}

Napi::Value EngineObject::sample(const Napi::CallbackInfo& info) {
  refuse_disposed(info.Env());
  SampleRequest request;
  request.prompt = copy_of<int32_t>(info[0]);
  request.max_tokens = info[1].As<Napi::Number>().Int64Value();
  request.temperature = info[2].As<Napi::Number>().FloatValue();
  request.stop_tokens = copy_of<int32_t>(info[3]);
  request.key = key_of(info[4]);
  return thread_->start_sampling(info.Env(), std::move(request));
}

Napi::Value EngineObject::logits(const Napi::CallbackInfo& info) {
  return start(info, [tokens = copy_of<int32_t>(info[0])](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    std::vector<float> logits = engine.trainer().logits(engine.weights(), tokens);
    return [logits = std::move(logits)](Napi::Env env) { return to_array(env, logits); };
  });
}

Napi::Value EngineObject::log_probs(const Napi::CallbackInfo& info) {
  auto rows = training_rows(info[0].As<Napi::Object>());
  const bool reference = info[1].As<Napi::Boolean>();
  const float temperature = info[2].As<Napi::Number>().FloatValue();
  return start(info, [=, rows = std::move(rows)](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const float* weights = reference ? engine.reference() : engine.weights();
    std::vector<float> flat;
    for (const auto& row : engine.trainer().log_probs(weights, rows, temperature, cancelled)) {
      flat.insert(flat.end(), row.begin(), row.end());
    }
    return [flat = std::move(flat)](Napi::Env env) { return to_array(env, flat); };
  });
}

Napi::Value EngineObject::forward_backward(const Napi::CallbackInfo& info) {
  auto rows = training_rows(info[0].As<Napi::Object>());
  const auto loss = info[1].As<Napi::Object>();
  PolicyHeadOptions options;
  const std::string mode = text(loss, "mode");
  options.mode = mode == "clone" ? HeadMode::clone : mode == "linear" ? HeadMode::linear : HeadMode::policy;
  options.temperature = number(loss, "temperature");
  options.entropy_weight = number(loss, "entropyWeight");
  options.has_reference = !info[0].As<Napi::Object>().Get("referenceLogProbs").IsUndefined();
  options.loss = policy_loss_options(loss);
  const Aggregation aggregation = aggregation_of(text(loss, "aggregation"));
  const bool skip = boolean(loss, "skipZeroAdvantage");
  return start(info, [=, rows = std::move(rows)](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const PolicyHeadSums sums =
        engine.trainer().forward_backward(engine.weights(), rows, options, aggregation, skip, cancelled);
    return [sums](Napi::Env env) {
      const double tokens = double(std::max<int64_t>(sums.tokens, 1));
      const Napi::Object report = Napi::Object::New(env);
      report.Set("loss", sums.loss);
      report.Set("tokens", double(sums.tokens));
      report.Set("entropy", sums.entropy / tokens);
      report.Set("clipFraction", double(sums.clipped + sums.dual_clipped) / tokens);
      report.Set("kl", sums.kl / tokens);
      report.Set("policyKl", sums.policy_kl / tokens);
      report.Set("ratio", sums.ratio / tokens);
      return report;
    };
  });
}

Napi::Value EngineObject::optimizer_step(const Napi::CallbackInfo& info) {
  const auto o = info[0].As<Napi::Object>();
  const OptimizerOptions options{number(o, "learningRate"), number(o, "beta1"),       number(o, "beta2"),
                                 number(o, "epsilon"),      number(o, "weightDecay"), number(o, "maxGradientNorm")};
  return start(info, [=, steps = steps_](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    engine.trainer().steps = *steps;
    const StepReport report = engine.trainer().optimizer_step(engine.weights(), options);
    *steps = engine.trainer().steps;
    if (!report.skipped) engine.weights_changed();
    return [report](Napi::Env env) {
      const Napi::Object result = Napi::Object::New(env);
      result.Set("gradientNorm", report.gradient_norm);
      result.Set("skipped", report.skipped);
      return result;
    };
  });
}

Napi::Value EngineObject::clear_gradients(const Napi::CallbackInfo& info) {
  return start(info, [](Engine& engine, const std::atomic<bool>&) {
    engine.trainer().clear_gradients();
    return nothing();
  });
}

Napi::Value EngineObject::statistics(const Napi::CallbackInfo& info) {
  const Napi::Object result = Napi::Object::New(info.Env());
  result.Set("computedTokens", double(counts_->computed));
  result.Set("reusedTokens", double(counts_->reused));
  result.Set("sampledTokens", double(counts_->sampled));
  result.Set("preemptions", double(counts_->preempted));
  return result;
}

Napi::Value EngineObject::steps(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), double(*steps_));
}

void EngineObject::set_steps(const Napi::CallbackInfo&, const Napi::Value& value) {
  *steps_ = value.As<Napi::Number>().Int64Value();
}

Napi::Value EngineObject::dispose(const Napi::CallbackInfo& info) {
  if (!disposed_) {
    disposed_ = true;
    Napi::MemoryManagement::AdjustExternalMemory(info.Env(), -external_bytes_);
    external_bytes_ = 0;
  }
  return thread_->stop(info.Env());
}

}  // namespace gigpo
