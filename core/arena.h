// Arena allocator of device memory for one pass: allocated piece by piece, freed all at once. After the first passes have shown how much
// is needed, the memory is one block and no further device allocation occurs.
#pragma once
#include <cstring>
#include <functional>
#include <vector>

#include "core/device.h"

namespace gigpo {

// Block of device memory that several users take turns in: sampling for its KV cache, training for its activations.
class Region {
 public:
  Region(Device& device, size_t bytes)
      : device_(device), data_(static_cast<std::byte*>(device.allocate(bytes))), bytes_(bytes) {}
  ~Region() { device_.release(data_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Makes `user` the current user. Returns true if another user had the memory in between, so that the data of `user` is lost.
  bool take(const void* user) {
    const bool lost = user_ != user;
    user_ = user;
    return lost;
  }

 private:
  Device& device_;
  std::byte* data_;
  size_t bytes_;
  const void* user_ = nullptr;
};

class Arena {
 public:
  // Allocates from `region` first, if given, and from the device only when the region is full.
  explicit Arena(Device& device, Region* region = nullptr) : device_(&device), type_(device.activation_type()), region_(region) { reset(); }
  // Counting arena: allocates no memory. Only sizes are counted; the returned addresses are invalid.
  explicit Arena(Type type);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* bytes(size_t count);
  Tensor tensor(int64_t rows, int64_t columns) { return tensor(rows, columns, type_); }  // of the activation type
  Tensor tensor(int64_t rows, int64_t columns, Type type);
  float* floats(int64_t count) { return array<float>(count); }
  template <class T>
  T* array(int64_t count) {
    return static_cast<T*>(bytes(size_t(count) * sizeof(T)));
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* result = array<T>(int64_t(values.size()));
    device_->upload(result, values.data(), values.size() * sizeof(T));
    return result;
  }

  // Several arrays that are uploaded in one transfer, because small transfers are dominated by latency. Sets each pointer to its array.
  class Bundle {
   public:
    template <class T>
    void add(const std::vector<T>& values, const T** pointer) {
      static_assert(alignof(T) <= 8);
      const size_t at = (bytes_.size() + 7) / 8 * 8;
      bytes_.resize(at + values.size() * sizeof(T));
      if (!values.empty()) std::memcpy(&bytes_[at], values.data(), values.size() * sizeof(T));
      places_.push_back([=](std::byte* base) { *pointer = reinterpret_cast<const T*>(base + at); });
    }
    void upload(Arena& arena) {
      std::byte* base = arena.upload(bytes_);
      for (const auto& place : places_) place(base);
    }

   private:
    std::vector<std::byte> bytes_;
    std::vector<std::function<void(std::byte*)>> places_;
  };

  void reset();

  // Counter that changes whenever the same sequence of requests may return different addresses than before.
  uint64_t generation() const { return generation_; }
  // Largest number of bytes that were in use at once.
  size_t peak() const { return peak_; }

 private:
  struct Block {
    std::byte* data;
    size_t size;
  };
  void add_block(size_t size);

  Device* device_ = nullptr;
  Type type_;
  Region* region_ = nullptr;
  std::vector<Block> blocks_;  // the region first
  size_t used_ = 0;            // bytes used in the last block
  size_t before_ = 0;          // bytes used in the blocks before
  size_t peak_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace gigpo
