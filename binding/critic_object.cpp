#include "binding/critic_object.h"

#include <cmath>

#include "binding/engine_object.h"

namespace gigpo {

namespace {

// What an object is made with.
struct Made {
  std::shared_ptr<EngineThread> thread;
  std::vector<Parameter> parameters, adapter_parameters;
};

}  // namespace

Napi::Function CriticObject::define(Napi::Env env) {
  return DefineClass(env, "Critic",
                     with_learner({InstanceMethod<&CriticObject::predict>("predict"),
                                   InstanceMethod<&CriticObject::forward_backward>("forwardBackward")}));
}

Work CriticObject::opening(std::weak_ptr<EngineThread> thread) {
  return [thread](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    const Transformer& transformer = engine.critic().transformer();
    return [thread, parameters = transformer.layout().parameters,
            adapter_parameters = transformer.adapter_layout().parameters](Napi::Env env) {
      Made made{thread.lock(), parameters, adapter_parameters};
      return env.GetInstanceData<AddonState>()->critic_class.New({Napi::External<Made>::New(env, &made)});
    };
  };
}

CriticObject::CriticObject(const Napi::CallbackInfo& info) : LearnerObject(info) {
  if (!info[0].IsExternal()) throw Napi::TypeError::New(info.Env(), "A critic is made by its engine.");
  const Made& made = *info[0].As<Napi::External<Made>>().Data();
  thread_ = made.thread;
  parameters_ = made.parameters;
  adapter_parameters_ = made.adapter_parameters;
}

Napi::Value CriticObject::predict(const Napi::CallbackInfo& info) {
  const auto object = info[0].As<Napi::Object>();
  const TrainingBatch batch = training_batch(object);
  const auto predict = [=](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    std::vector<float> values = engine.critic().predict(batch, cancelled);
    return [values = std::move(values)](Napi::Env env) { return to_array(env, values); };
  };
  return start(info, predict, object);
}

Napi::Value CriticObject::forward_backward(const Napi::CallbackInfo& info) {
  const auto object = info[0].As<Napi::Object>();
  const TrainingBatch batch = training_batch(object);
  const double clip = number(info[1].As<Napi::Object>(), "clip");
  if (!(clip >= 0)) throw make_error(info.Env(), "BAD_ARGUMENT", "clip is not a number of at least 0.");
  if (!batch.returns) throw make_error(info.Env(), "BAD_ARGUMENT", "This loss needs returns.");
  if (!batch.old_values && !std::isinf(clip)) throw make_error(info.Env(), "BAD_ARGUMENT", "A clip needs oldValues.");
  const auto train = [=](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    const ValueReport found = engine.critic().forward_backward(batch, clip, cancelled);
    return [found](Napi::Env env) {
      const Napi::Object report = Napi::Object::New(env);
      report.Set("loss", found.loss);
      report.Set("tokens", double(found.tokens));
      report.Set("clipFraction", found.clip_fraction);
      report.Set("value", found.value);
      return report;
    };
  };
  return start(info, train, object);
}

}  // namespace gigpo
