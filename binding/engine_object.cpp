#include "binding/engine_object.h"

#include "binding/convert.h"
#include "binding/environment.h"
#include "binding/engine_request.h"
#include "binding/half.h"
#include "core/initialize.h"

namespace gigpo {

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

// What a name of NativeBuffer stands for. `use` gets Parameters or a FlatBuffer.
template <class Use>
static void with_buffer(Engine& engine, const std::string& name, Use use) {
  if (name == "gradients") return use(engine.trainer().gradients());
  if (name == "firstMoment") return use(engine.trainer().first_moment());
  if (name == "secondMoment") return use(engine.trainer().second_moment());
  if (name == "adapter") return use(engine.adapter());
  use(engine.model());
}

static MakeResult nothing() {
  return [](Napi::Env env) { return env.Undefined(); };
}

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(env, "Engine",
                     {InstanceAccessor<&EngineObject::parameters>("parameters"),
                      InstanceAccessor<&EngineObject::adapter_parameters>("adapterParameters"),
                      InstanceAccessor<&EngineObject::plan>("plan"),
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

EngineObject::EngineObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  EngineRequest request(info[0].As<Napi::Object>(), info[1].As<Napi::Object>());
  parameters_ = ModelLayout(request.config).parameters;
  adapter_parameters_ = AdapterLayout(request.config, request.options.adapter).parameters;
  external_bytes_ = ModelLayout(request.config).size * int64_t{sizeof(float)};
  thread_ = EngineThread::create(env, std::move(request));
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

static Napi::Array to_array(Napi::Env env, const std::vector<Parameter>& parameters) {
  const Napi::Array result = Napi::Array::New(env);
  for (uint32_t i = 0; i < parameters.size(); i++) {
    const Napi::Object item = Napi::Object::New(env);
    const Napi::Array shape = Napi::Array::New(env);
    for (uint32_t d = 0; d < parameters[i].shape.size(); d++) shape.Set(d, double(parameters[i].shape[d]));
    item.Set("name", parameters[i].name);
    item.Set("shape", shape);
    result.Set(i, item);
  }
  return result;
}

Napi::Value EngineObject::parameters(const Napi::CallbackInfo& info) { return to_array(info.Env(), parameters_); }

Napi::Value EngineObject::adapter_parameters(const Napi::CallbackInfo& info) {
  return to_array(info.Env(), adapter_parameters_);
}

// Where element info[2] of parameter info[1] lies in the buffer named info[0].
int64_t EngineObject::offset_of(const Napi::CallbackInfo& info) const {
  const std::string name = info[0].As<Napi::String>();
  const bool of_adapter = !adapter_parameters_.empty() && name != "weights" && name != "merged";
  return (of_adapter ? adapter_parameters_ : parameters_).at(info[1].As<Napi::Number>().Uint32Value()).offset +
         info[2].As<Napi::Number>().Int64Value();
}

Napi::Value EngineObject::initialize(const Napi::CallbackInfo& info) {
  const Key key = key_of(info[0]);
  const double deviation = info[1].As<Napi::Number>().DoubleValue();
  return start(info, [=](Engine& engine, const std::atomic<bool>&) {
    const Transformer& transformer = engine.transformer();
    std::vector<float> weights(transformer.layout().size);
    gigpo::initialize(transformer.config(), transformer.layout(), deviation, key, weights.data());
    engine.model().write(0, weights.data(), int64_t(weights.size()));
    engine.weights_changed();
    return nothing();
  });
}

Napi::Value EngineObject::write(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>(), type = info[4].As<Napi::String>();
  const int64_t offset = offset_of(info);
  std::vector<uint8_t> bytes = copy_of<uint8_t>(info[3]);
  return start(info, [=, bytes = std::move(bytes)](Engine& engine, const std::atomic<bool>&) {
    const std::vector<float> values = to_floats(bytes, type);
    with_buffer(engine, name, [&](auto& buffer) { buffer.write(offset, values.data(), int64_t(values.size())); });
    engine.weights_changed();
    return nothing();
  });
}

Napi::Value EngineObject::read(const Napi::CallbackInfo& info) {
  const std::string name = info[0].As<Napi::String>();
  const int64_t offset = offset_of(info);
  const int64_t count = info[3].As<Napi::Number>().Int64Value();
  const int64_t index = info[1].As<Napi::Number>().Int64Value(), at = info[2].As<Napi::Number>().Int64Value();
  return start(info, [=](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    std::vector<float> values(count);
    if (name == "merged") engine.read_merged(index, at, values.data(), count);
    else with_buffer(engine, name, [&](auto& buffer) { buffer.read(offset, values.data(), count); });
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
    std::vector<float> logits = engine.trainer().logits(engine.policy(), tokens);
    return [logits = std::move(logits)](Napi::Env env) { return to_array(env, logits); };
  });
}

Napi::Value EngineObject::log_probs(const Napi::CallbackInfo& info) {
  auto rows = training_rows(info[0].As<Napi::Object>());
  const bool reference = info[1].As<Napi::Boolean>();
  const float temperature = info[2].As<Napi::Number>().FloatValue();
  return start(info, [=, rows = std::move(rows)](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const PolicyTensors weights = reference ? engine.reference() : engine.policy();
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
        engine.trainer().forward_backward(engine.policy(), rows, options, aggregation, skip, cancelled);
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
    const StepReport report = engine.trainer().optimizer_step(engine.trained(), options);
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

Napi::Value EngineObject::plan(const Napi::CallbackInfo& info) {
  const auto plan = thread_->plan();
  return plan ? to_object(info.Env(), *plan) : info.Env().Undefined();
}

Napi::Value EngineObject::statistics(const Napi::CallbackInfo& info) {
  const auto counts = thread_->counts();
  const Napi::Object result = Napi::Object::New(info.Env());
  result.Set("computedTokens", double(counts->computed));
  result.Set("reusedTokens", double(counts->reused));
  result.Set("sampledTokens", double(counts->sampled));
  result.Set("preemptions", double(counts->preempted));
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
