// Typed arrays and plain objects in, copies out. TypeScript has checked the arguments; a wrong type here throws a TypeError.
// Inputs are copied before anything is queued: JavaScript may transfer or change an array while native code runs.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "binding/napi_setup.h"
#include "core/kernels/clipped_surrogate.h"

namespace gigpo {

template <class T>
using TypedArray = Napi::TypedArrayOf<T>;

template <class T>
TypedArray<T> typed_array(const Napi::Value& value) {
  if (!value.IsTypedArray()) throw Napi::TypeError::New(value.Env(), "A typed array was expected.");
  const auto array = value.As<TypedArray<T>>();
  if (array.TypedArrayType() != TypedArray<T>::New(value.Env(), 0).TypedArrayType()) {
    throw Napi::TypeError::New(value.Env(), "A typed array of another type was expected.");
  }
  return array;
}

template <class T>
std::vector<T> copy_of(const Napi::Value& value) {
  const TypedArray<T> array = typed_array<T>(value);
  return {array.Data(), array.Data() + array.ElementLength()};
}

template <class T>
std::vector<T> copy_of_optional(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  return value.IsUndefined() ? std::vector<T>{} : copy_of<T>(value);
}

template <class T>
TypedArray<T> to_array(Napi::Env env, const std::vector<T>& values) {
  TypedArray<T> result = TypedArray<T>::New(env, values.size());
  if (!values.empty()) std::memcpy(result.Data(), values.data(), values.size() * sizeof(T));
  return result;
}

inline double number(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::Number>().DoubleValue();
}
inline int64_t integer(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::Number>().Int64Value();
}
inline bool boolean(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::Boolean>().Value();
}
inline std::string text(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::String>().Utf8Value();
}

inline PolicyLossOptions policy_loss_options(const Napi::Object& object) {
  const std::string kl = text(object, "klEstimator");
  return {number(object, "clipLow"), number(object, "clipHigh"), number(object, "clipDual"), number(object, "klWeight"),
          kl == "k1" ? KlEstimator::k1 : kl == "k2" ? KlEstimator::k2 : KlEstimator::k3};
}

inline Aggregation aggregation_of(const std::string& name) {
  return name == "sequence-mean-token-sum"        ? Aggregation::sequence_mean_token_sum
         : name == "sequence-mean-token-mean"     ? Aggregation::sequence_mean_token_mean
         : name == "sequence-mean-token-sum-norm" ? Aggregation::sequence_mean_token_sum_norm
                                                  : Aggregation::token_mean;
}

}  // namespace gigpo
