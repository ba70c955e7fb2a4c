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

// NativeBatch of src/native.ts, read where it lies.
static TrainingBatch training_batch(const Napi::Object& object) {
  const auto length = [&](const char* name) { return int64_t(typed_array<int32_t>(object.Get(name)).ElementLength()); };
  const auto integers = [&](const char* name, int64_t count) { return elements<int32_t>(object, name, count); };
  TrainingBatch batch;
  batch.rows = length("rowOffsets") - 1;
  batch.spans = length("spanRows");
  if (batch.rows < 0) throw make_error(object.Env(), "BAD_ARGUMENT", "rowOffsets is empty.");
  batch.row_offsets = integers("rowOffsets", batch.rows + 1);
  batch.tokens = integers("tokens", batch.row_offsets[batch.rows]);
  batch.span_rows = integers("spanRows", batch.spans);
  batch.span_begins = integers("spanBegins", batch.spans);
  batch.span_counts = integers("spanCounts", batch.spans);
  const int64_t sampled = batch.sampled();
  const auto floats = [&](const char* name) { return optional_elements<float>(object, name, sampled); };
  batch.advantages = floats("advantages");
  batch.old_log_probs = floats("oldLogProbs");
  batch.reference_log_probs = floats("referenceLogProbs");
  batch.gradients = floats("coefficients");
  batch.entropy_gradients = floats("entropyCoefficients");
  return batch;
}

// NativeTrainingLoss of src/native.ts.
static TrainingLoss training_loss(const Napi::Object& object, const TrainingBatch& batch) {
  TrainingLoss loss;
  loss.head.mode = choice<HeadMode>(
      object, "mode", {{"policy", HeadMode::policy}, {"clone", HeadMode::clone}, {"linear", HeadMode::linear}});
  loss.head.temperature = number(object, "temperature");
  const auto require = [&](const float* column, const char* name) {
    if (!column) throw make_error(object.Env(), "BAD_ARGUMENT", std::string("This loss needs ") + name + ".");
  };
  if (loss.head.mode == HeadMode::linear) {
    require(batch.gradients, "coefficients");
    loss.head.has_entropy_gradient = batch.entropy_gradients != nullptr;
  }
  if (loss.head.mode != HeadMode::policy) return loss;
  require(batch.advantages, "advantages");
  require(batch.old_log_probs, "oldLogProbs");
  loss.head.loss = policy_loss_options(object);
  if (loss.head.loss.kl_weight != 0) require(batch.reference_log_probs, "referenceLogProbs");
  loss.head.has_reference = batch.reference_log_probs != nullptr;
  loss.head.entropy_weight = number(object, "entropyWeight");
  loss.aggregation = aggregation_of(object);
  loss.ratio = ratio_of(object);
  loss.unit = choice<Unit>(object, "unit", {{"span", Unit::span}, {"row", Unit::row}});
  loss.skip_zero_advantage = boolean(object, "skipZeroAdvantage");
  return loss;
}

enum class Buffer { weights, merged, adapter, gradients, first_moment, second_moment };

static Buffer buffer_of(const Napi::Value& name) {
  return choice<Buffer>(name, "buffer",
                        {{"weights", Buffer::weights},
                         {"merged", Buffer::merged},
                         {"adapter", Buffer::adapter},
                         {"gradients", Buffer::gradients},
                         {"firstMoment", Buffer::first_moment},
                         {"secondMoment", Buffer::second_moment}});
}

// `use` gets Parameters or a FlatBuffer; never of what is merged.
template <class Use>
static void with_buffer(Engine& engine, Buffer buffer, Use use) {
  switch (buffer) {
    case Buffer::gradients: return use(engine.trainer().gradients());
    case Buffer::first_moment: return use(engine.trainer().first_moment());
    case Buffer::second_moment: return use(engine.trainer().second_moment());
    case Buffer::adapter: return use(engine.adapter());
    case Buffer::weights: return use(engine.model());
    case Buffer::merged: throw Error("BAD_ARGUMENT", "What is merged can only be read.");
  }
}

static MakeResult nothing() {
  return [](Napi::Env env) { return env.Undefined(); };
}

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(env, "Engine",
                     {InstanceAccessor<&EngineObject::parameters>("parameters"),
                      InstanceAccessor<&EngineObject::adapter_parameters>("adapterParameters"),
                      InstanceAccessor<&EngineObject::plan>("plan"),
                      InstanceAccessor<&EngineObject::deterministic>("deterministic"),
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

Napi::Value EngineObject::start(const Napi::CallbackInfo& info, Work work, const Napi::Object& read) {
  refuse_disposed(info.Env());
  return thread_->start(info.Env(), std::move(work), read);
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

// `count` elements of parameter info[1], from its element info[2] on, in the buffer that info[0] names.
EngineObject::Place EngineObject::place_of(const Napi::CallbackInfo& info, int64_t count) const {
  const Buffer buffer = buffer_of(info[0]);
  const bool of_adapter = !adapter_parameters_.empty() && buffer != Buffer::weights && buffer != Buffer::merged;
  const std::vector<Parameter>& parameters = of_adapter ? adapter_parameters_ : parameters_;
  const int64_t index = info[1].As<Napi::Number>().Int64Value(), at = info[2].As<Napi::Number>().Int64Value();
  if (index < 0 || index >= int64_t(parameters.size()))
    throw make_error(info.Env(), "BAD_ARGUMENT", "There is no parameter " + std::to_string(index) + ".");
  const Parameter& parameter = parameters[index];
  if (at < 0 || count < 0 || count > parameter.size() - at)
    throw make_error(info.Env(), "BAD_ARGUMENT", parameter.name + " has " + std::to_string(parameter.size()) + " elements; " +
                                                     std::to_string(count) + " from " + std::to_string(at) + " on are too many.");
  return {index, at, parameter.offset + at};
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
  const Buffer buffer = buffer_of(info[0]);
  const auto type = choice<FileType>(info[4], "type", {{"F32", FileType::f32}, {"F16", FileType::f16}, {"BF16", FileType::bf16}});
  std::vector<uint8_t> bytes = copy_of<uint8_t>(info[3]);
  const Place place = place_of(info, int64_t(bytes.size()) / (type == FileType::f32 ? 4 : 2));
  return start(info, [=, bytes = std::move(bytes)](Engine& engine, const std::atomic<bool>&) {
    const std::vector<float> values = to_floats(bytes, type);
    with_buffer(engine, buffer, [&](auto& to) { to.write(place.offset, values.data(), int64_t(values.size())); });
    engine.weights_changed();
    return nothing();
  });
}

Napi::Value EngineObject::read(const Napi::CallbackInfo& info) {
  const Buffer buffer = buffer_of(info[0]);
  const int64_t count = info[3].As<Napi::Number>().Int64Value();
  const Place place = place_of(info, count);
  return start(info, [=](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    std::vector<float> values(count);
    if (buffer == Buffer::merged) engine.read_merged(place.index, place.at, values.data(), count);
    else with_buffer(engine, buffer, [&](auto& from) { from.read(place.offset, values.data(), count); });
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
  const auto object = info[0].As<Napi::Object>();
  const TrainingBatch batch = training_batch(object);
  const bool reference = choice<bool>(info[1], "of", {{"current", false}, {"reference", true}});
  const float temperature = info[2].As<Napi::Number>().FloatValue();
  const auto score = [=](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const PolicyTensors weights = reference ? engine.reference() : engine.policy();
    Scores scores = engine.trainer().scores(weights, batch, temperature, cancelled);
    return [scores = std::move(scores)](Napi::Env env) {
      const Napi::Object result = Napi::Object::New(env);
      result.Set("logProbs", to_array(env, scores.log_probs));
      result.Set("entropies", to_array(env, scores.entropies));
      return result;
    };
  };
  return start(info, score, object);
}

Napi::Value EngineObject::forward_backward(const Napi::CallbackInfo& info) {
  const auto object = info[0].As<Napi::Object>();
  const TrainingBatch batch = training_batch(object);
  const TrainingLoss loss = training_loss(info[1].As<Napi::Object>(), batch);
  const auto train = [=](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const LossReport found = engine.trainer().forward_backward(engine.policy(), batch, loss, cancelled);
    return [found](Napi::Env env) {
      const Napi::Object report = Napi::Object::New(env);
      report.Set("loss", found.loss);
      report.Set("tokens", double(found.tokens));
      report.Set("entropy", found.entropy);
      report.Set("clipFraction", found.clip_fraction);
      report.Set("kl", found.kl);
      report.Set("policyKl", found.policy_kl);
      report.Set("ratio", found.ratio);
      return report;
    };
  };
  return start(info, train, object);
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

Napi::Value EngineObject::deterministic(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), thread_->deterministic());
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
