// Array in the emulator's device memory, which the host can also access.
#pragma once
#include "cuda/check.h"

namespace gigpo::cuda::emulator {

template <class T>
struct Array {
  explicit Array(size_t count) { CUDA_CHECK(cudaMalloc(&data, count * sizeof(T))); }
  ~Array() { cudaFree(data); }
  Array(const Array&) = delete;
  T& operator[](size_t i) const { return data[i]; }
  T* data = nullptr;
};

}  // namespace gigpo::cuda::emulator
