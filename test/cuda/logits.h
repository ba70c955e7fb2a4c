// Common parts of tests of kernels on logits: values of logits in both types.
#pragma once
#include <cuda_bf16.h>

#include <limits>
#include <type_traits>

#include "cuda/kernels.h"

namespace gigpo::test {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

inline float as_float(float x) { return x; }
inline float as_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class Logit>
Logit from_float(float x) {
  if constexpr (std::is_same_v<Logit, float>) return x;
  else return __float2bfloat16_rn(x);
}

// The head with gradients of this type.
template <class Gradient, class Logit, class... Rest>
void policy_head_chunk_of(int64_t rows, int64_t vocab, Logit* logits, Rest... rest) {
  if constexpr (std::is_same_v<Logit, float>) {
    cuda::policy_head_chunk(rows, vocab, logits, std::is_same_v<Gradient, float> ? Type::f32 : Type::bf16, rest...);
  } else {
    static_assert(std::is_same_v<Gradient, Logit>);
    cuda::policy_head_chunk(rows, vocab, logits, rest...);
  }
}

}  // namespace gigpo::test
