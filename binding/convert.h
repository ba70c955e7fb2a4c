// Conversion of typed arrays and plain objects of JavaScript to copies in C++. TypeScript has validated the arguments with detailed
// messages; here only arguments that would be misread are rejected with a GigpoError: a wrong type or length, an unknown name. Inputs are
// copied before work is queued, because JavaScript may transfer or change an array while native code runs. Values that index memory are
// checked in the copy, because another thread may write to shared memory at any time. A batch, which no other code can access, is read in
// place.
#pragma once
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/environment.h"
#include "binding/napi_setup.h"
#include "core/kernels/clipped_surrogate.h"

namespace gigpo {

template <class T>
using TypedArray = Napi::TypedArrayOf<T>;

[[noreturn]] inline void refuse(const std::string& sentence) { throw Error("BAD_ARGUMENT", sentence); }

inline Napi::Object object(const Napi::Value& value, const char* what) {
  if (!value.IsObject()) refuse(std::string(what) + " must be an object.");
  return value.As<Napi::Object>();
}

template <class T>
struct ArrayKind;
template <>
struct ArrayKind<float> {
  static constexpr napi_typedarray_type type = napi_float32_array;
  static constexpr const char* name = "a Float32Array";
};
template <>
struct ArrayKind<double> {
  static constexpr napi_typedarray_type type = napi_float64_array;
  static constexpr const char* name = "a Float64Array";
};
template <>
struct ArrayKind<int32_t> {
  static constexpr napi_typedarray_type type = napi_int32_array;
  static constexpr const char* name = "an Int32Array";
};
template <>
struct ArrayKind<uint32_t> {
  static constexpr napi_typedarray_type type = napi_uint32_array;
  static constexpr const char* name = "a Uint32Array";
};
template <>
struct ArrayKind<uint8_t> {
  static constexpr napi_typedarray_type type = napi_uint8_array;
  static constexpr const char* name = "a Uint8Array";
};

template <class T>
TypedArray<T> typed_array(const Napi::Value& value, const char* what) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != ArrayKind<T>::type)
    refuse(std::string(what) + " must be " + ArrayKind<T>::name + ".");
  return value.As<TypedArray<T>>();
}

template <class T>
std::vector<T> copy_of(const Napi::Value& value, const char* what) {
  const TypedArray<T> array = typed_array<T>(value, what);
  return {array.Data(), array.Data() + array.ElementLength()};
}

// Elements of an array property, which must have `count` elements.
template <class T>
const T* elements(const Napi::Value& value, const char* name, int64_t count) {
  const TypedArray<T> array = typed_array<T>(value, name);
  if (int64_t(array.ElementLength()) == count) return array.Data();
  refuse(std::string(name) + " has " + std::to_string(array.ElementLength()) + " elements, not " + std::to_string(count) + ".");
}
template <class T>
const T* elements(const Napi::Object& object, const char* name, int64_t count) {
  return elements<T>(object.Get(name), name, count);
}

// Optional array property; null if the property is undefined.
template <class T>
const T* optional_elements(const Napi::Object& object, const char* name, int64_t count) {
  const Napi::Value value = object.Get(name);
  return value.IsUndefined() ? nullptr : elements<T>(value, name, count);
}

// Minimum size in bytes for which memory is handed over to JavaScript instead of copied; smaller arrays are not worth a finalizer.
constexpr size_t worth_handing_over = 1 << 16;

// Result array. Memory of large arrays is allocated here, so that an allocation failure can be reported; V8 would abort the process.
template <class T>
TypedArray<T> to_array(Napi::Env env, std::vector<T> values) {
  const size_t count = values.size(), bytes = count * sizeof(T);
  if (bytes < worth_handing_over) {
    TypedArray<T> result = TypedArray<T>::New(env, count);
    if (count > 0) std::memcpy(result.Data(), values.data(), bytes);
    return result;
  }
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  const auto release = [](Napi::BasicEnv, void*, std::vector<T>* given) { delete given; };
  const auto buffer = Napi::ArrayBuffer::New(env, static_cast<void*>(held->data()), bytes, release, held.get());
  held.release();
  return TypedArray<T>::New(env, count, buffer, 0);
}

inline double number(const Napi::Value& value, const char* what) {
  if (!value.IsNumber()) refuse(std::string(what) + " must be a number.");
  return value.As<Napi::Number>().DoubleValue();
}
inline double number(const Napi::Object& object, const char* name) { return number(object.Get(name), name); }

// Safe integer of JavaScript: an integer that a double represents exactly.
inline int64_t integer(const Napi::Value& value, const char* what) {
  const double found = number(value, what);
  if (found != std::trunc(found) || std::abs(found) >= 0x1p53) refuse(std::string(what) + " must be a whole number.");
  return int64_t(found);
}
inline int64_t integer(const Napi::Object& object, const char* name) { return integer(object.Get(name), name); }

inline bool boolean(const Napi::Value& value, const char* what) {
  if (!value.IsBoolean()) refuse(std::string(what) + " must be true or false.");
  return value.As<Napi::Boolean>().Value();
}
inline bool boolean(const Napi::Object& object, const char* name) { return boolean(object.Get(name), name); }

// Value for a name. Throws for an unknown name; the message lists the known names.
template <class T>
using Choices = std::initializer_list<std::pair<const char*, T>>;

template <class T>
T choice(const Napi::Value& value, const char* what, Choices<T> choices) {
  const bool printed = !value.IsObject() && !value.IsSymbol();
  const std::string given = printed ? value.ToString().Utf8Value() : "not a name";
  std::string known;
  for (const auto& [name, meaning] : choices) {
    if (value.IsString() && given == name) return meaning;
    known += std::string(known.empty() ? "\"" : ", \"") + name + "\"";
  }
  refuse(std::string(what) + " is \"" + given + "\"; give one of " + known + ".");
}
template <class T>
T choice(const Napi::Object& object, const char* what, Choices<T> choices) {
  return choice<T>(object.Get(what), what, choices);
}

inline PolicyLossOptions policy_loss_options(const Napi::Object& object) {
  return {number(object, "clipLow"), number(object, "clipHigh"), number(object, "clipDual"), number(object, "klWeight"),
          choice<KlEstimator>(object, "klEstimator",
                              {{"k1", KlEstimator::k1},
                               {"k2", KlEstimator::k2},
                               {"k3", KlEstimator::k3},
                               {"abs", KlEstimator::abs},
                               {"k1+", KlEstimator::k1_plus},
                               {"k3+", KlEstimator::k3_plus}})};
}

inline RatioLevel ratio_of(const Napi::Object& object) {
  return choice<RatioLevel>(object, "importanceSamplingLevel", {{"token", RatioLevel::token}, {"sequence", RatioLevel::sequence}});
}

inline Aggregation aggregation_of(const Napi::Object& object) {
  return choice<Aggregation>(object, "aggregation",
                             {{"token-mean", Aggregation::token_mean},
                              {"token-sum", Aggregation::token_sum},
                              {"sequence-mean-token-sum", Aggregation::sequence_mean_token_sum},
                              {"sequence-mean-token-mean", Aggregation::sequence_mean_token_mean},
                              {"sequence-mean-fixed-length", Aggregation::sequence_mean_fixed_length},
                              {"sequence-mean-token-sum-norm", Aggregation::sequence_mean_token_sum_norm}});
}

// Report fields about the importance ratio, common to all forms of the surrogate.
template <class Report>
void set_ratios(Napi::Object& to, const Report& report) {
  to.Set("kl", report.kl);
  to.Set("clipFraction", report.clip_fraction);
  to.Set("dualClipFraction", report.dual_clip_fraction);
  to.Set("policyKl", report.policy_kl);
  to.Set("ratio", report.ratio);
}

// Fixed length of the aggregation; 0 if the aggregation has none.
inline int64_t fixed_length_of(const Napi::Object& object, Aggregation aggregation) {
  if (aggregation != Aggregation::sequence_mean_fixed_length) return 0;
  const int64_t length = integer(object, "fixedLength");
  if (length < 1) refuse("fixedLength must be at least 1.");
  return length;
}

}  // namespace gigpo
