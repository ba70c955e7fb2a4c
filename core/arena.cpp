#include "core/arena.h"

#include <algorithm>

namespace gigpo {

constexpr size_t alignment = 256;
constexpr size_t smallest_block = size_t{1} << 20;

Arena::~Arena() {
  for (const Block& block : blocks_) device_.release(block.data);
}

void* Arena::bytes(size_t count) {
  count = (count + alignment - 1) / alignment * alignment;
  if (blocks_.empty() || used_ + count > blocks_.back().size) {
    const size_t size = std::max({count, smallest_block, total_ / 2});
    blocks_.push_back({static_cast<std::byte*>(device_.allocate(size)), size});
    total_ += size;
    used_ = 0;
  }
  void* result = blocks_.back().data + used_;
  used_ += count;
  return result;
}

Tensor Arena::tensor(int64_t rows, int64_t columns) {
  const Type type = device_.activation_type();
  return {bytes(rows * columns * bytes_of(type)), type, rows, columns, columns};
}

int32_t* Arena::upload(const std::vector<int32_t>& values) {
  auto* result = static_cast<int32_t*>(bytes(values.size() * sizeof(int32_t)));
  device_.upload(result, values.data(), values.size() * sizeof(int32_t));
  return result;
}

void Arena::reset() {
  if (blocks_.size() > 1) {
    for (const Block& block : blocks_) device_.release(block.data);
    blocks_.clear();
    blocks_.push_back({static_cast<std::byte*>(device_.allocate(total_)), total_});
  }
  used_ = 0;
}

}  // namespace gigpo
