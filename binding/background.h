// Asynchronous call that belongs to no engine: runs on a thread of Node's pool and settles its promise on the JavaScript thread.
#pragma once
#include "binding/environment.h"

namespace gigpo {

class Background : public Napi::AsyncWorker {
 public:
  // Starts `work` on another thread and returns the promise. `read` keeps the arrays that the work reads in place alive until the promise
  // is settled; these must not be modified before.
  static Napi::Value start(Napi::Env env, std::function<MakeResult()> work, const Napi::Object& read) {
    auto* call = new Background(env, std::move(work), read);  // deletes itself
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
