// Rotation of rotary embeddings, and the condition for reading the tables in packs.
#pragma once
#include <cstdint>

#include "core/device.h"

namespace gigpo::cuda {

// a_j, b_j = a_j cos θ_j - b_j sin θ_j, b_j cos θ_j + a_j sin θ_j; `direction` -1 is the inverse rotation.
template <int width>
__device__ void turn(float (&a)[width], float (&b)[width], const float (&cosine)[width], const float (&sine)[width], float direction) {
#pragma unroll
  for (int k = 0; k < width; k++) {
    const float low = a[k] * cosine[k] - b[k] * (sine[k] * direction);
    b[k] = b[k] * cosine[k] + a[k] * (sine[k] * direction);
    a[k] = low;
  }
}

inline bool in_packs(const Rotary& rotary) {
  return reinterpret_cast<uintptr_t>(rotary.cosine) % 16 == 0 && reinterpret_cast<uintptr_t>(rotary.sine) % 16 == 0;
}

}  // namespace gigpo::cuda
