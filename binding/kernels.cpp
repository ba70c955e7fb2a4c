// The three named kernels on typed arrays. They are fast enough to run where they are called.
#include "binding/kernels.h"

#include <thread>

#include "binding/convert.h"
#include "binding/environment.h"
#include "core/kernels/anchor_groups.h"
#include "core/kernels/token_log_probs.h"

namespace gigpo {

Napi::Value token_log_probs_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto logits = typed_array<float>(info[0]);
  const int64_t vocabulary = info[1].As<Napi::Number>().Int64Value();
  const auto tokens = typed_array<int32_t>(info[2]);
  const auto rows = tokens.ElementLength();
  TypedArray<float> log_probs = TypedArray<float>::New(env, rows), entropies = TypedArray<float>::New(env, rows);
  return guarded(env, [&]() -> Napi::Value {
    token_log_probs(int64_t(rows), vocabulary, logits.Data(), tokens.Data(), info[3].As<Napi::Number>().DoubleValue(),
                    log_probs.Data(), entropies.Data());
    const Napi::Object result = Napi::Object::New(env);
    result.Set("logProbs", log_probs);
    result.Set("entropies", entropies);
    return result;
  });
}

Napi::Value clipped_surrogate_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto arrays = info[0].As<Napi::Object>(), o = info[1].As<Napi::Object>();
  const auto floats = [&](const char* name) -> const float* {
    const Napi::Value value = arrays.Get(name);
    return value.IsUndefined() ? nullptr : typed_array<float>(value).Data();
  };
  const auto rows = typed_array<int32_t>(arrays.Get("rows"));
  ClippedSurrogateInput input;
  input.rows = int64_t(rows.ElementLength());
  input.tokens = int64_t(typed_array<float>(arrays.Get("logProbs")).ElementLength());
  input.row_lengths = rows.Data();
  input.log_probs = floats("logProbs");
  input.old_log_probs = floats("oldLogProbs");
  input.advantages = floats("advantages");
  input.mask = floats("mask");
  input.reference_log_probs = floats("referenceLogProbs");
  ClippedSurrogateOptions options;
  static_cast<PolicyLossOptions&>(options) = policy_loss_options(o);
  options.aggregation = aggregation_of(text(o, "aggregation"));
  options.ratio = text(o, "ratio") == "sequence" ? RatioLevel::sequence : RatioLevel::token;
  TypedArray<float> gradient = TypedArray<float>::New(env, input.tokens);
  return guarded(env, [&]() -> Napi::Value {
    const ClippedSurrogateReport report = clipped_surrogate(input, options, gradient.Data());
    const Napi::Object result = Napi::Object::New(env);
    result.Set("loss", report.loss);
    result.Set("policyLoss", report.policy_loss);
    result.Set("kl", report.kl);
    result.Set("clipFraction", report.clip_fraction);
    result.Set("dualClipFraction", report.dual_clip_fraction);
    result.Set("policyKl", report.policy_kl);
    result.Set("ratio", report.ratio);
    result.Set("gradient", gradient);
    return result;
  });
}

Napi::Value group_anchors_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto tasks = typed_array<int32_t>(info[0]);
  const auto bytes = typed_array<uint8_t>(info[1]);
  const auto ends = typed_array<double>(info[2]);
  const std::vector<int64_t> offsets(ends.Data(), ends.Data() + ends.ElementLength());
  TypedArray<int32_t> groups = TypedArray<int32_t>::New(env, tasks.ElementLength());
  return guarded(env, [&]() -> Napi::Value {
    const auto states = int32_t(tasks.ElementLength());
    const bool cuda = info[3].ToBoolean();
    const int32_t count = cuda ? group_anchors_on_cuda(states, tasks.Data(), bytes.Data(), offsets.data(), groups.Data())
                               : group_anchors(states, tasks.Data(), bytes.Data(), offsets.data(), groups.Data(),
                                               int(std::thread::hardware_concurrency()));
    const Napi::Object result = Napi::Object::New(env);
    result.Set("groups", groups);
    result.Set("count", count);
    return result;
  });
}

}  // namespace gigpo
