// Typed arrays and plain objects in, copies out. TypeScript has checked the arguments with sentences; here what would be read
// wrongly is refused: a wrong type throws a TypeError, an unknown name or a wrong length a GigpoError. Inputs are copied before
// anything is queued, since JavaScript may transfer or change an array while native code runs; a batch, which nobody else sees, is
// read where it lies.
#pragma once
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "binding/environment.h"
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

// The elements of an array property, of which there must be `count`.
template <class T>
const T* elements(const Napi::Object& object, const char* name, int64_t count) {
  const TypedArray<T> array = typed_array<T>(object.Get(name));
  if (int64_t(array.ElementLength()) == count) return array.Data();
  throw make_error(object.Env(), "BAD_ARGUMENT", std::string(name) + " has " + std::to_string(array.ElementLength()) +
                                                     " elements, not " + std::to_string(count) + ".");
}

// Null where there is no such property.
template <class T>
const T* optional_elements(const Napi::Object& object, const char* name, int64_t count) {
  return object.Get(name).IsUndefined() ? nullptr : elements<T>(object, name, count);
}

template <class T>
TypedArray<T> to_array(Napi::Env env, const std::vector<T>& values) {
  TypedArray<T> result = TypedArray<T>::New(env, values.size());
  if (!values.empty()) std::memcpy(result.Data(), values.data(), values.size() * sizeof(T));
  return result;
}

inline Napi::Number numeric(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  if (!value.IsNumber()) throw Napi::TypeError::New(object.Env(), std::string(name) + " must be a number.");
  return value.As<Napi::Number>();
}
inline double number(const Napi::Object& object, const char* name) { return numeric(object, name).DoubleValue(); }
inline int64_t integer(const Napi::Object& object, const char* name) { return numeric(object, name).Int64Value(); }
inline bool boolean(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  if (!value.IsBoolean()) throw Napi::TypeError::New(object.Env(), std::string(name) + " must be true or false.");
  return value.As<Napi::Boolean>().Value();
}

// What a name stands for; any other name throws, with those that are known.
template <class T>
using Choices = std::initializer_list<std::pair<const char*, T>>;

template <class T>
T choice(const Napi::Value& value, const char* what, Choices<T> choices) {
  const std::string given = value.ToString();
  std::string known;
  for (const auto& [name, meaning] : choices) {
    if (value.IsString() && given == name) return meaning;
    known += std::string(known.empty() ? "\"" : ", \"") + name + "\"";
  }
  throw make_error(value.Env(), "BAD_ARGUMENT", std::string(what) + " is \"" + given + "\"; give one of " + known + ".");
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
  return choice<RatioLevel>(object, "ratio", {{"token", RatioLevel::token}, {"sequence", RatioLevel::sequence}});
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

// 0 where the aggregation has none.
inline int64_t fixed_length_of(const Napi::Object& object, Aggregation aggregation) {
  if (aggregation != Aggregation::sequence_mean_fixed_length) return 0;
  const int64_t length = integer(object, "fixedLength");
  if (length < 1) throw make_error(object.Env(), "BAD_ARGUMENT", "fixedLength must be at least 1.");
  return length;
}

}  // namespace gigpo
