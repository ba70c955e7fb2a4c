// What one JavaScript environment (the main thread, or a worker) holds of the addon. Nothing is static: every worker_thread
// loads the addon anew.
#pragma once
#include "binding/napi_setup.h"
#include "core/error.h"

namespace gigpo {

struct AddonState {
  Napi::FunctionReference error_class;   // GigpoError, handed over by src/native.ts
  Napi::FunctionReference critic_class;  // CriticObject's, which only an engine makes
};

inline Napi::Error make_error(Napi::Env env, const char* code, const std::string& message) {
  const auto* state = env.GetInstanceData<AddonState>();
  if (state == nullptr || state->error_class.IsEmpty()) return Napi::Error::New(env, std::string(code) + ": " + message);
  const Napi::Object error =
      state->error_class.New({Napi::String::New(env, code), Napi::String::New(env, message)});
  return Napi::Error(env, error);
}

// Runs a synchronous call; the core's errors become GigpoErrors.
template <class F>
Napi::Value guarded(Napi::Env env, F&& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw make_error(env, error.code, error.what());
  } catch (const std::bad_alloc&) {
    throw make_error(env, "OUT_OF_MEMORY", "The machine's memory is used up: take a smaller batch or model.");
  }
}

}  // namespace gigpo
