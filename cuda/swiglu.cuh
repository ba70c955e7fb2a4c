// SwiGLU of one element.
#pragma once

namespace gigpo::cuda {

// The fast division gives 0 where the divisor is above 2^126: the result is below 2^-126 there.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

// up g σ(g)
__device__ inline float swiglu_of(float gate, float up) { return up * (gate * sigmoid(gate)); }

}  // namespace gigpo::cuda
