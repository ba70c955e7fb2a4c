// Asynchronous conversion of numbers to and from the formats of GGUF files.
#include <cmath>

#include "binding/background.h"
#include "binding/convert.h"
#include "binding/kernels.h"
#include "binding/stored_type.h"
#include "core/quantize.h"
#include "core/quantized.h"

namespace gigpo {

Napi::Value quantize_call(const Napi::CallbackInfo& info) {
  const Stored type = stored_of(info[0]);
  const auto values = typed_array<float>(info[1], "values");
  const int64_t count = int64_t(values.ElementLength());
  if (!can_quantize(type)) refuse("Conversion to this type is not supported, only from it.");
  if (count % block_of(type).elements != 0) refuse(std::to_string(count) + " numbers are not a whole number of blocks.");
  const auto work = [type, count, from = values.Data()]() -> MakeResult {
    const float most = largest_stored(type);
    for (int64_t i = 0; i < count; i++) {
      if (!std::isfinite(from[i])) throw Error("NON_FINITE", "A weight is not finite: export an earlier checkpoint.");
      if (std::abs(from[i]) <= most) continue;
      throw Error("BAD_MODEL", type == Stored::bf16 ? "A weight is beyond 3.39e38, the range of BF16: choose the type f32."
                                                    : "A weight is beyond 65504, the range of F16: choose the type f32 or bf16.");
    }
    std::vector<uint8_t> bytes(size_t(stored_bytes(type, count)));
    quantize(from, type, count, reinterpret_cast<std::byte*>(bytes.data()));
    return [bytes = std::move(bytes)](Napi::Env env) mutable { return to_array(env, std::move(bytes)); };
  };
  return Background::start(info.Env(), work, values);
}

Napi::Value dequantize_call(const Napi::CallbackInfo& info) {
  const Stored type = stored_of(info[0]);
  const auto bytes = typed_array<uint8_t>(info[1], "bytes");
  const BlockShape block = block_of(type);
  if (int64_t(bytes.ElementLength()) % block.bytes != 0) refuse(std::to_string(bytes.ElementLength()) + " bytes are not a whole number of blocks.");
  const int64_t count = int64_t(bytes.ElementLength()) / block.bytes * block.elements;
  const auto work = [type, count, from = reinterpret_cast<const std::byte*>(bytes.Data())]() -> MakeResult {
    std::vector<float> values(size_t(count), 0.0f);
    dequantize(from, type, count, values.data());
    return [values = std::move(values)](Napi::Env env) mutable { return to_array(env, std::move(values)); };
  };
  return Background::start(info.Env(), work, bytes);
}

}  // namespace gigpo
