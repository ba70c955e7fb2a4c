// Functions of core/cpu/vector.h that vector_test.cpp calls; compiled once per instruction set, like the kernels.
#pragma once
#include <stdint.h>

#include "core/cpu/isa.h"

namespace gigpo::cpu {

struct VectorKernel {
  int64_t lanes;
  void (*exp)(const float* x, float* y, int64_t count);
  void (*log)(const float* x, float* y, int64_t count);
  void (*log_one_minus)(const float* x, float* y, int64_t count);
  void (*sqrt)(const float* x, float* y, int64_t count);
  void (*max)(const float* x, const float* y, float* out);  // one vector of each
  void (*min)(const float* x, const float* y, float* out);
  float (*horizontal_sum)(const float* x);
  float (*horizontal_max)(const float* x);
  void (*copy)(const float* from, float* to, int64_t count);  // count <= lanes floats, by a partial load and store
  void (*load_some)(const float* from, float* to, int64_t count);  // a partial load and a whole store
  void (*transpose)(const float* from, float* to);  // [lanes][lanes]
};

GIGPO_KERNEL_TABLE(VectorKernel, vector_kernel)

}  // namespace gigpo::cpu
