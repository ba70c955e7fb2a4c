// One call off the event loop that belongs to no engine: on a thread of Node's pool, its promise settled on the JavaScript thread.
#pragma once
#include "binding/environment.h"

namespace gigpo {

class Background : public Napi::AsyncWorker {
 public:
  // Returns the promise. `work` runs on another thread; what `read` holds stays where it is until then, and nobody may change it.
  static Napi::Value start(Napi::Env env, std::function<MakeResult()> work, const Napi::Object& read) {
    auto* call = new Background(env, std::move(work), read);  // which deletes itself
    const Napi::Promise promise = call->deferred_.Promise();
    call->Queue();
    return promise;
  }

 protected:
  void Execute() override {
    try {
      result_ = work_();
    } catch (...) {
      error_ = current_error();
    }
  }
  void OnOK() override {
    try {
      deferred_.Resolve(guarded(Env(), [&] {
        if (error_) throw Error(error_->code, error_->message);
        return result_(Env());
      }));
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
  }

 private:
  Background(Napi::Env env, std::function<MakeResult()> work, const Napi::Object& read)
      : AsyncWorker(env, "gigpo call"), deferred_(Napi::Promise::Deferred::New(env)), work_(std::move(work)), read_(Napi::Persistent(read)) {}

  Napi::Promise::Deferred deferred_;
  std::function<MakeResult()> work_;
  Napi::ObjectReference read_;
  MakeResult result_;
  std::optional<CodedMessage> error_;
};

}  // namespace gigpo
