// The class of what `Engine.critic` gives, which src/native.ts types as NativeValueLearner.
#pragma once
#include "binding/learner_object.h"

namespace gigpo {

class CriticObject : public LearnerObject<CriticObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // Work for the engine's thread: makes the critic where there is none yet, and its object.
  static Work opening(std::weak_ptr<EngineThread> thread);
  explicit CriticObject(const Napi::CallbackInfo& info);

  static Critic& learner(Engine& engine) { return engine.critic(); }

 private:
  Napi::Value predict(const Napi::CallbackInfo& info);
  Napi::Value forward_backward(const Napi::CallbackInfo& info);
};

}  // namespace gigpo
