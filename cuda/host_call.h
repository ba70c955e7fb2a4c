// Call of a kernel on arrays in host memory: uploads, runs and downloads in one call, with separate memory on the first device.
#pragma once
#include "core/device_report.h"
#include "cuda/memory.h"

namespace gigpo::cuda {

// Throws Error DEVICE_UNAVAILABLE with the reason if there is no device.
inline void use_first_device() {
  const DeviceReport report = device_report();
  if (report.devices.empty()) throw Error("DEVICE_UNAVAILABLE", report.message);
  CUDA_CHECK(cudaSetDevice(report.devices[0].index));
}

// Single allocation for all arrays. Parts are added before the allocation and begin at multiples of 256 bytes.
class HostCall {
 public:
  template <class T>
  size_t add(int64_t count) {
    const size_t offset = bytes_;
    bytes_ += (size_t(count) * sizeof(T) + 255) / 256 * 256;
    return offset;
  }
  void allocate() { memory_.grow(bytes_ > 0 ? bytes_ : 1); }

  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.data()) + offset);
  }
  template <class T>
  const T* upload(size_t offset, const T* from, int64_t count) const {
    if (count > 0) CUDA_CHECK(cudaMemcpy(at<T>(offset), from, size_t(count) * sizeof(T), cudaMemcpyHostToDevice));
    return at<T>(offset);
  }
  template <class T>
  void download(size_t offset, T* to, int64_t count) const {
    if (count > 0) CUDA_CHECK(cudaMemcpy(to, at<T>(offset), size_t(count) * sizeof(T), cudaMemcpyDeviceToHost));
  }

 private:
  Scratch memory_;
  size_t bytes_ = 0;
};

}  // namespace gigpo::cuda
