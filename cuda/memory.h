// RAII owners of device memory and of pinned host memory.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>

#include "cuda/check.h"

namespace gigpo::cuda {

// Owner of at least as many bytes as last requested. Contents are lost when the memory grows.
template <cudaError_t (*allocate)(void**, size_t), cudaError_t (*release)(void*)>
class Memory {
 public:
  Memory() = default;
  ~Memory() { release(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  // Queued work of the stream must no longer use the memory.
  void grow(size_t bytes) {
    CUDA_CHECK(release(data_));
    data_ = nullptr;
    bytes_ = 0;
    CUDA_CHECK(allocate(&data_, bytes));
    bytes_ = bytes;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};
using Scratch = Memory<cudaMalloc, cudaFree>;
using Pinned = Memory<cudaMallocHost, cudaFreeHost>;  // page-locked host memory

// Small uploads and downloads through pinned memory, so that the host need not wait for the stream. Uploads use it as a
// ring; space is reused once the host knows that the stream has passed it.
class Staging {
 public:
  static constexpr size_t capacity = size_t{16} << 20, largest = capacity / 4;

  explicit Staging(cudaStream_t stream) : stream_(stream) { ring_.grow(capacity); }
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
    wait();
    std::memcpy(host, place, bytes);
  }
  // Implementation of Device::fetch. A result that is never read is not waited for: the next one in its place is
  // written after it.
  std::function<void()> fetch(void* host, const void* device, size_t bytes) {
    Fetch& fetch = fetches_[fetched_++ % std::size(fetches_)];
    if (bytes > fetch.place.bytes()) {
      wait();
      fetch.place.grow(bytes);
    }
    CUDA_CHECK(cudaMemcpyAsync(fetch.place.data(), device, bytes, cudaMemcpyDeviceToHost, stream_));
    CUDA_CHECK(cudaEventRecord(fetch.written, stream_));
    return [this, &fetch, host, bytes, before = taken_] {
      CUDA_CHECK(cudaEventSynchronize(fetch.written));
      std::memcpy(host, fetch.place.data(), bytes);
      passed_ = std::max(passed_, before);
    };
  }

 private:
  std::byte* take(size_t bytes) {
    constexpr size_t alignment = 64;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment, left = capacity - taken_ % capacity;
    if (rounded > left) taken_ += left;
    if (taken_ + rounded > passed_ + capacity) wait();
    std::byte* place = static_cast<std::byte*>(ring_.data()) + taken_ % capacity;
    taken_ += rounded;
    return place;
  }
  void wait() {
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    passed_ = taken_;
  }

  struct Fetch {
    // A wait takes a whole core unless it blocks, which wakes up some 20 us later. With few cores, JavaScript needs it more.
    Fetch() {
      const unsigned blocking = std::thread::hardware_concurrency() <= 4 ? cudaEventBlockingSync : cudaEventDefault;
      CUDA_CHECK(cudaEventCreateWithFlags(&written, cudaEventDisableTiming | blocking));
    }
    ~Fetch() { cudaEventDestroy(written); }
    Pinned place;
    cudaEvent_t written = nullptr;
  };

  cudaStream_t stream_;
  Pinned ring_;
  size_t taken_ = 0, passed_ = 0;  // bytes since the beginning: taken by the host, and known to be passed by the stream
  Fetch fetches_[2];
  size_t fetched_ = 0;
};

}  // namespace gigpo::cuda
