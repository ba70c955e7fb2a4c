// Memory that is given back by itself: on the device, and on the host where the device can reach it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "cuda/check.h"

namespace gigpo::cuda {

// At least as many bytes as were last asked for; what it held is lost when it grows.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  // The stream's work must not be reading it any more.
  void grow(size_t bytes) {
    CUDA_CHECK(cudaFree(data_));
    data_ = nullptr;
    bytes_ = 0;
    CUDA_CHECK(cudaMalloc(&data_, bytes));
    bytes_ = bytes;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Small uploads and downloads pass through here: from memory of its own the host need not wait for the stream.
class Staging {
 public:
  static constexpr size_t capacity = size_t{4} << 20, largest = capacity / 4;

  explicit Staging(cudaStream_t stream) : stream_(stream) {
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), capacity));
  }
  ~Staging() { cudaFreeHost(data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void upload(void* device, const void* host, size_t bytes) {
    std::byte* place = take(bytes);
    std::memcpy(place, host, bytes);
    CUDA_CHECK(cudaMemcpyAsync(device, place, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void download(void* host, const void* device, size_t bytes) {
    std::byte* place = take(bytes);
    CUDA_CHECK(cudaMemcpyAsync(place, device, bytes, cudaMemcpyDeviceToHost, stream_));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::memcpy(host, place, bytes);
    used_ = 0;  // everything before has been read too
  }

 private:
  std::byte* take(size_t bytes) {
    constexpr size_t alignment = 64;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (used_ + rounded > capacity) {
      CUDA_CHECK(cudaStreamSynchronize(stream_));
      used_ = 0;
    }
    std::byte* place = data_ + used_;
    used_ += rounded;
    return place;
  }

  cudaStream_t stream_;
  std::byte* data_ = nullptr;
  size_t used_ = 0;
};

}  // namespace gigpo::cuda
