// Conversion of NativeModel and NativeEngineOptions of src/native.ts to options of the core.
#pragma once
#include "binding/napi_setup.h"
#include "core/memory_plan.h"

namespace gigpo {

// Parameters for opening an engine. Contains no JavaScript values, because opening takes a while and runs on the engine's thread.
struct EngineRequest {
  ModelConfig config;
  bool cuda = false;
  int gpu = -1;  // see CudaOptions::index
  Type precision = Type::f32;
  int threads = 0;
  bool cublas_samples = false;
  EngineOptions options;  // 0: chosen for the device
  Purpose purpose;

  EngineRequest(const Napi::Object& model, const Napi::Object& options);

  // Ends the calls in which other replicas wait for this one.
  void leave() const {
    if (options.replica) options.replica.all->fail();
  }

  DeviceTraits traits() const { return cuda ? cuda_traits(precision) : cpu_traits(precision, threads); }
  // Options completed for a device with `available` bytes. Throws Error OUT_OF_MEMORY if this is not enough.
  FittedEngine fitted(int64_t available) const {
    return fit_options(config, options, traits(), purpose, available);
  }
};

struct OpenedEngine {
  std::unique_ptr<Engine> engine;
  MemoryPlan plan;
};
// Opens an engine. Throws Error DEVICE_UNAVAILABLE or OUT_OF_MEMORY.
OpenedEngine open_engine(const EngineRequest& request);

Napi::Object to_object(Napi::Env env, const MemoryPlan& plan);
// Implementation of replicas(count) of src/native.ts.
Napi::Value replicas_call(const Napi::CallbackInfo& info);
// Implementation of memoryPlan(model, options, availableBytes) of src/native.ts.
Napi::Value memory_plan_call(const Napi::CallbackInfo& info);

}  // namespace gigpo
