// How far two distributions over a vocabulary lie apart, from their logits: the Hellinger distance of p = softmax(z / T) and
// q = softmax(w / T),
//   √(1 - Σ √(p q)) = √(½ Σ (√p - √q)²), from 0 to 1.
// The second form is what is computed. Of distributions that are nearly the same the first leaves nothing but its rounding: a sum of
// floats is right to 1e-7, and the distance so to no more than its root, 3e-4.
#pragma once
#include <cstdint>

#include "core/random.h"

namespace gigpo {

// Of Σ (√p - √q)², which may round above 2. NaN stays NaN.
GIGPO_HOST_DEVICE inline double hellinger_of(double squares) { return squares > 2 ? 1 : sqrt(squares / 2); }

// z, w [vocab]; NaN where a logit is not finite, but for minus infinity, whose token has probability 0.
float hellinger(int64_t vocab, const float* z, const float* w, double temperature);

}  // namespace gigpo
