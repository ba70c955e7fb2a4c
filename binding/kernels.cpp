// The named kernels on typed arrays. They are fast enough to run where they are called.
#include "binding/kernels.h"

#include "binding/convert.h"
#include "binding/environment.h"
#include "core/kernels/anchor_groups.h"
#include "core/kernels/token_log_probs.h"
#include "core/kernels/value_loss.h"
#include "core/process_limits.h"

namespace gigpo {

// Throws where `count` elements are not what there is: native code would read beyond.
static void require(const Napi::CallbackInfo& info, bool fits, const char* what) {
  if (!fits) throw make_error(info.Env(), "BAD_ARGUMENT", std::string(what) + " does not fit the other arguments.");
}

static bool on_cuda(const Napi::Value& device) { return choice<bool>(device, "device", {{"cpu", false}, {"cuda", true}}); }

Napi::Value token_log_probs_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto logits = typed_array<float>(info[0]);
  const int64_t vocabulary = info[1].As<Napi::Number>().Int64Value();
  const auto tokens = typed_array<int32_t>(info[2]);
  const double temperature = info[3].As<Napi::Number>().DoubleValue();
  const bool cuda = on_cuda(info[4]);
  const auto rows = int64_t(tokens.ElementLength()), count = int64_t(logits.ElementLength());
  require(info, rows == 0 ? count == 0 : count % rows == 0 && count / rows == vocabulary, "The number of logits");
  TypedArray<float> log_probs = TypedArray<float>::New(env, rows), entropies = TypedArray<float>::New(env, rows);
  return guarded(env, [&]() -> Napi::Value {
    const auto kernel = cuda ? token_log_probs_on_cuda : token_log_probs;
    kernel(rows, vocabulary, logits.Data(), tokens.Data(), temperature, log_probs.Data(), entropies.Data());
    const Napi::Object result = Napi::Object::New(env);
    result.Set("logProbs", log_probs);
    result.Set("entropies", entropies);
    return result;
  });
}

Napi::Value clipped_surrogate_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto arrays = info[0].As<Napi::Object>(), o = info[1].As<Napi::Object>();
  const auto rows = typed_array<int32_t>(arrays.Get("rows"));
  const auto tokens = int64_t(typed_array<float>(arrays.Get("logProbs")).ElementLength());
  ClippedSurrogateInput input;
  input.rows = int64_t(rows.ElementLength());
  input.tokens = tokens;
  input.row_lengths = rows.Data();
  input.log_probs = elements<float>(arrays, "logProbs", tokens);
  input.old_log_probs = elements<float>(arrays, "oldLogProbs", tokens);
  input.advantages = elements<float>(arrays, "advantages", tokens);
  input.mask = elements<float>(arrays, "mask", tokens);
  input.reference_log_probs = optional_elements<float>(arrays, "referenceLogProbs", tokens);
  ClippedSurrogateOptions options;
  static_cast<PolicyLossOptions&>(options) = policy_loss_options(o);
  options.aggregation = aggregation_of(o);
  options.fixed_length = fixed_length_of(o, options.aggregation);
  options.ratio = ratio_of(o);
  const bool cuda = on_cuda(info[2]);
  TypedArray<float> gradient = TypedArray<float>::New(env, size_t(tokens));
  return guarded(env, [&]() -> Napi::Value {
    const auto kernel = cuda ? clipped_surrogate_on_cuda : clipped_surrogate;
    const ClippedSurrogateReport report = kernel(input, options, gradient.Data());
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

Napi::Value value_loss_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto arrays = info[0].As<Napi::Object>();
  const auto tokens = int64_t(typed_array<double>(arrays.Get("values")).ElementLength());
  const ValueLossInput input{tokens, elements<double>(arrays, "values", tokens), elements<double>(arrays, "returns", tokens),
                             optional_elements<double>(arrays, "oldValues", tokens), optional_elements<double>(arrays, "mask", tokens)};
  const double clip = info[1].As<Napi::Number>().DoubleValue();
  TypedArray<double> gradient = TypedArray<double>::New(env, size_t(tokens));
  return guarded(env, [&]() -> Napi::Value {
    const ValueLossReport report = value_loss(input, clip, gradient.Data());
    const Napi::Object result = Napi::Object::New(env);
    result.Set("loss", report.loss);
    result.Set("clipFraction", report.clip_fraction);
    result.Set("gradient", gradient);
    return result;
  });
}

Napi::Value group_anchors_call(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto tasks = typed_array<int32_t>(info[0]);
  const auto bytes = typed_array<uint8_t>(info[1]);
  const auto ends = typed_array<double>(info[2]);
  const bool cuda = info[3].ToBoolean();
  require(info, ends.ElementLength() == tasks.ElementLength() + 1, "The number of offsets");
  for (size_t i = 0; i < ends.ElementLength(); i++) {
    const double least = i == 0 ? 0 : ends[i - 1], most = double(bytes.ElementLength());
    require(info, ends[i] >= least && ends[i] <= most, "An offset");  // false for NaN
  }
  const std::vector<int64_t> offsets(ends.Data(), ends.Data() + ends.ElementLength());
  TypedArray<int32_t> groups = TypedArray<int32_t>::New(env, tasks.ElementLength());
  return guarded(env, [&]() -> Napi::Value {
    const auto states = int32_t(tasks.ElementLength());
    const int32_t count = cuda ? group_anchors_on_cuda(states, tasks.Data(), bytes.Data(), offsets.data(), groups.Data())
                               : group_anchors(states, tasks.Data(), bytes.Data(), offsets.data(), groups.Data(),
                                               usable_cpus());
    const Napi::Object result = Napi::Object::New(env);
    result.Set("groups", groups);
    result.Set("count", count);
    return result;
  });
}

}  // namespace gigpo
