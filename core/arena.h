// Device memory for one pass: taken piece by piece, given back all at once. After the first passes have shown how much is
// needed it is one block, and nothing is allocated any more.
#pragma once
#include <vector>

#include "core/device.h"

namespace gigpo {

class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* bytes(size_t count);
  Tensor tensor(int64_t rows, int64_t columns);  // of the device's activation type
  float* floats(int64_t count) { return static_cast<float*>(bytes(count * sizeof(float))); }
  int32_t* upload(const std::vector<int32_t>& values);

  void reset();

 private:
  struct Block {
    std::byte* data;
    size_t size;
  };
  Device& device_;
  std::vector<Block> blocks_;
  size_t used_ = 0;  // of the last block
  size_t total_ = 0;
};

}  // namespace gigpo
