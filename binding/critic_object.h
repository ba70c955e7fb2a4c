// JavaScript class of the result of `Engine.critic`; typed as NativeValueLearner in src/native.ts.
#pragma once
#include "binding/learner_object.h"

namespace gigpo {

class CriticObject : public LearnerObject<CriticObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // Work for the engine's thread: creates the critic if necessary, and its JavaScript object.
  static Work opening(std::weak_ptr<EngineThread> thread);
  explicit CriticObject(const Napi::CallbackInfo& info);

  static Critic& learner(Engine& engine) { return engine.critic(); }

 private:
  Napi::Value predict(const Napi::CallbackInfo& info);
  Napi::Value forward_backward(const Napi::CallbackInfo& info);
};

}  // namespace gigpo
