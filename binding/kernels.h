#pragma once
#include "binding/napi_setup.h"

namespace gigpo {

Napi::Value token_log_probs_call(const Napi::CallbackInfo& info);
Napi::Value clipped_surrogate_call(const Napi::CallbackInfo& info);
Napi::Value value_loss_call(const Napi::CallbackInfo& info);
Napi::Value group_anchors_call(const Napi::CallbackInfo& info);
Napi::Value quantize_call(const Napi::CallbackInfo& info);
Napi::Value dequantize_call(const Napi::CallbackInfo& info);
Napi::Value group_anchors_on_gpu_call(const Napi::CallbackInfo& info);

}  // namespace gigpo
