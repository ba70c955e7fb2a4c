// Hellinger distance between two distributions over a vocabulary, p = softmax(z / T) and q = softmax(w / T), from their logits:
//   √(1 - Σ √(p q)) = √(½ Σ (√p - √q)²), from 0 to 1.
// The second form is computed. For nearly equal distributions the first form yields only rounding errors: a sum of floats is accurate to
// 1e-7, so the distance, its square root, would only be accurate to 3e-4.
#pragma once
#include <cstdint>

#include "core/random.h"

namespace gigpo {

// Distance from `squares` = Σ (√p - √q)², which may be above 2 by rounding. NaN stays NaN.
GIGPO_HOST_DEVICE inline double hellinger_of(double squares) { return squares > 2 ? 1 : sqrt(squares / 2); }

// Distance of the logits z, w [vocab]. NaN if a logit is NaN or plus infinity; the token of a logit of minus infinity has probability 0.
float hellinger(int64_t vocab, const float* z, const float* w, double temperature);

}  // namespace gigpo
