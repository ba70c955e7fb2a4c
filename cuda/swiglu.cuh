// SwiGLU of one element.
#pragma once

namespace gigpo::cuda {

// The fast division returns 0 for divisors above 2^126, where the exact result is below 2^-126.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

// up g σ(g)
__device__ inline float swiglu_of(float gate, float up) { return up * (gate * sigmoid(gate)); }

}  // namespace gigpo::cuda
