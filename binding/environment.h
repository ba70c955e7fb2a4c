// What one JavaScript environment (the main thread, or a worker) holds of the addon. Nothing is static: every worker_thread
// loads the addon anew.
#pragma once
#include <functional>
#include <optional>

#include "binding/napi_setup.h"
#include "core/error.h"

namespace gigpo {

// What finished work gives to its promise; called on the JavaScript thread.
using MakeResult = std::function<Napi::Value(Napi::Env)>;

struct AddonState {
  Napi::FunctionReference error_class;   // GigpoError, handed over by src/native.ts
  Napi::FunctionReference critic_class;  // CriticObject's, which only an engine makes
  Napi::FunctionReference vocabulary_class, grammar_class;  // to know their objects again
};

inline Napi::Error make_error(Napi::Env env, const char* code, const std::string& message) {
  const auto* state = env.GetInstanceData<AddonState>();
  if (state == nullptr || state->error_class.IsEmpty()) return Napi::Error::New(env, std::string(code) + ": " + message);
  const Napi::Object error =
      state->error_class.New({Napi::String::New(env, code), Napi::String::New(env, message)});
  return Napi::Error(env, error);
}

struct CodedMessage {
  const char* code;
  std::string message;
};

// Of the C++ exception that is being handled.
inline CodedMessage current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code, error.what()};
  } catch (const std::bad_alloc&) {
    return {"OUT_OF_MEMORY", "The machine's memory is used up: take a smaller batch, cache or model."};
  } catch (const std::exception& error) {
    return {"INTERNAL", error.what()};
  } catch (...) {
    return {"INTERNAL", "Something was thrown that is no exception."};
  }
}

// Every entry from JavaScript runs within this: a C++ exception that crossed it would end the process. What is thrown becomes a
// GigpoError; JavaScript's own exceptions, of a getter say, pass as they are.
template <class F>
auto guarded(Napi::Env env, F&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    const auto [code, message] = current_error();
    throw make_error(env, code, message);
  }
}

// A function for JavaScript, guarded.
using Call = Napi::Value (*)(const Napi::CallbackInfo&);
template <Call call>
Napi::Function function(Napi::Env env) {
  return Napi::Function::New(env, [](const Napi::CallbackInfo& info) { return guarded(info.Env(), [&] { return call(info); }); });
}

}  // namespace gigpo
