// One number for every weight, in a device's memory: the weights themselves, their gradients, an optimizer's moments.
#pragma once
#include "core/device.h"

namespace gigpo {

class FlatBuffer {
 public:
  // Holds anything until it is written or zeroed.
  FlatBuffer(Device& device, Type type, int64_t size);
  ~FlatBuffer() { device_.release(values_.data); }
  FlatBuffer(const FlatBuffer&) = delete;
  FlatBuffer& operator=(const FlatBuffer&) = delete;

  int64_t size() const { return values_.columns; }
  Tensor values() const { return values_; }  // [1][size]
  void* data() const { return values_.data; }
  Tensor range(int64_t offset, int64_t count) const { return values_.matrix(offset, 1, count); }
  void zero() { device_.zero(values_.data, size() * bytes_of(values_.type)); }

  // From and to host memory, in fp32 or as it is stored there, whatever the type.
  void write(int64_t offset, const std::byte* from, Stored type, int64_t count);
  void write(int64_t offset, const float* from, int64_t count) { write(offset, reinterpret_cast<const std::byte*>(from), Stored::f32, count); }
  void read(int64_t offset, float* to, int64_t count) const;

 private:
  // body(staging, first, count) for pieces of `count` floats that pass through fp32 memory on the device.
  template <class Body>
  void staged(int64_t count, Body body) const;

  Device& device_;
  Tensor values_;
};

// The weights of a model or an adapter: in the form that the device computes with and, where they are trained and that form is
// coarser, also in fp32, in which an optimizer's small steps add up. Whoever writes to them says so (`changed`).
class Parameters {
 public:
  Parameters(Device& device, int64_t size, bool trained);

  void zero();
  // Takes over the first `count` of other parameters of this device.
  void copy(const Parameters& from, int64_t count);
  Tensor values() const { return compute_.values(); }
  // Counts changes: who keeps what was computed with them can see whether it still holds.
  uint64_t version() const { return version_; }
  void changed() { changed(values()); }

  // In fp32. Throws where they are not trained and the device computes with something coarser.
  float* exact() const { return exact_ ? exact_->values().floats() : compute_.values().floats(); }
  // What an optimizer writes besides `exact`; null where that is all there is.
  void* rounded() const { return exact_ ? compute_.data() : nullptr; }

  void write(int64_t offset, const std::byte* from, Stored type, int64_t count);
  void write(int64_t offset, const float* from, int64_t count) { write(offset, reinterpret_cast<const std::byte*>(from), Stored::f32, count); }
  void read(int64_t offset, float* to, int64_t count) const { (exact_ ? *exact_ : compute_).read(offset, to, count); }

 private:
  Device& device_;
  FlatBuffer compute_;
  std::unique_ptr<FlatBuffer> exact_;
  uint64_t version_ = 0;

  void changed(Tensor written);
};

}  // namespace gigpo
