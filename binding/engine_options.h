// What src/native.ts calls NativeModel and NativeEngineOptions, for the core.
#pragma once
#include "binding/napi_setup.h"
#include "core/engine.h"

namespace gigpo {

ModelConfig model_config(const Napi::Object& model);
// Which device is asked for, before it is opened.
bool on_cuda(const Napi::Object& options);
DeviceTraits device_traits(const Napi::Object& options);
// Throws Error DEVICE_UNAVAILABLE.
std::unique_ptr<Device> make_device(const Napi::Object& options);
// Completed for a device with `available` bytes; throws Error OUT_OF_MEMORY where that is too little.
EngineOptions engine_options(const ModelConfig& config, const Napi::Object& options, int64_t available);

// memoryPlan(model, options) of src/native.ts.
Napi::Value memory_plan_call(const Napi::CallbackInfo& info);

}  // namespace gigpo
