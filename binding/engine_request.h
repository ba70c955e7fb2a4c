// What src/native.ts calls NativeModel and NativeEngineOptions, for the core.
#pragma once
#include "binding/napi_setup.h"
#include "core/memory_plan.h"

namespace gigpo {

// All that an engine is opened with. It holds nothing of JavaScript's: opening takes a while, and is the engine thread's work.
struct EngineRequest {
  ModelConfig config;
  bool cuda = false;
  Type precision = Type::f32;
  int threads = 0;
  bool cublas_samples = false;
  EngineOptions options;  // 0 where the device is to choose
  Purpose purpose;

  EngineRequest(const Napi::Object& model, const Napi::Object& options);

  DeviceTraits traits() const { return cuda ? cuda_traits(precision) : cpu_traits(precision, threads); }
  // Completed for a device with `available` bytes; throws Error OUT_OF_MEMORY where that is too little.
  FittedEngine fitted(int64_t available) const {
    return fit_options(config, options, traits(), purpose, available);
  }
};

struct OpenedEngine {
  std::unique_ptr<Engine> engine;
  MemoryPlan plan;
};
// Throws Error DEVICE_UNAVAILABLE, OUT_OF_MEMORY.
OpenedEngine open_engine(const EngineRequest& request);

Napi::Object to_object(Napi::Env env, const MemoryPlan& plan);
// memoryPlan(model, options, availableBytes) of src/native.ts.
Napi::Value memory_plan_call(const Napi::CallbackInfo& info);

}  // namespace gigpo
