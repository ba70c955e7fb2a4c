// The class `Engine` that src/native.ts types.
#pragma once
#include "binding/engine_thread.h"

namespace gigpo {

class EngineObject : public Napi::ObjectWrap<EngineObject> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit EngineObject(const Napi::CallbackInfo& info);
  ~EngineObject() override;
  void Finalize(Napi::BasicEnv env) override;

 private:
  Napi::Value parameters(const Napi::CallbackInfo& info);
  Napi::Value adapter_parameters(const Napi::CallbackInfo& info);
  Napi::Value initialize(const Napi::CallbackInfo& info);
  Napi::Value write(const Napi::CallbackInfo& info);
  Napi::Value read(const Napi::CallbackInfo& info);
  Napi::Value freeze_reference(const Napi::CallbackInfo& info);
  Napi::Value sample(const Napi::CallbackInfo& info);
  Napi::Value logits(const Napi::CallbackInfo& info);
  Napi::Value log_probs(const Napi::CallbackInfo& info);
  Napi::Value forward_backward(const Napi::CallbackInfo& info);
  Napi::Value optimizer_step(const Napi::CallbackInfo& info);
  Napi::Value clear_gradients(const Napi::CallbackInfo& info);
  Napi::Value plan(const Napi::CallbackInfo& info);
  Napi::Value deterministic(const Napi::CallbackInfo& info);
  Napi::Value statistics(const Napi::CallbackInfo& info);
  Napi::Value steps(const Napi::CallbackInfo& info);
  void set_steps(const Napi::CallbackInfo& info, const Napi::Value& value);
  Napi::Value dispose(const Napi::CallbackInfo& info);

  Napi::Value start(const Napi::CallbackInfo& info, Work work, const Napi::Object& read = {});
  void refuse_disposed(Napi::Env env) const;
  struct Place {
    int64_t index, at;  // element `at` of parameter `index`,
    int64_t offset;     // which stands here in its buffer
  };
  Place place_of(const Napi::CallbackInfo& info, int64_t count) const;

  std::shared_ptr<EngineThread> thread_;
  std::vector<Parameter> parameters_, adapter_parameters_;
  std::shared_ptr<std::atomic<int64_t>> steps_ = std::make_shared<std::atomic<int64_t>>(0);
  int64_t external_bytes_ = 0;  // told to V8, which otherwise would not see why it should collect a small object
  bool disposed_ = false;
};

}  // namespace gigpo
