#include "core/arena.h"

#include <algorithm>

namespace gigpo {

constexpr size_t alignment = 256;
constexpr size_t smallest_block = size_t{1} << 20;
// Bytes from which a counting arena counts no further: more than any memory, and few enough that sums of several counts fit in 64 bits.
constexpr size_t most_counted = size_t{1} << 58;

Arena::Arena(Type type) : type_(type), blocks_{{reinterpret_cast<std::byte*>(alignment), SIZE_MAX}} {}

Arena::~Arena() {
  if (!device_) return;
  for (const Block& block : blocks_) {
    if (!region_ || block.data != region_->data()) device_->release(block.data);
  }
}

void Arena::add_block(size_t size) {
  generation_++;
  blocks_.push_back({static_cast<std::byte*>(device_->allocate(size)), size});
}

void* Arena::bytes(size_t count) {
  count = (count + alignment - 1) / alignment * alignment;
  if (!device_) count = std::min(count, most_counted - used_);
  if (blocks_.empty() || used_ + count > blocks_.back().size) {
    add_block(std::max({count, smallest_block, peak_ / 2}));
    before_ += used_;
    used_ = 0;
  }
  void* result = blocks_.back().data + used_;
  used_ += count;
  peak_ = std::max(peak_, before_ + used_);
  return result;
}

Tensor Arena::tensor(int64_t rows, int64_t columns, Type type) {
  return {bytes(size_t(rows * columns * bytes_of(type))), type, rows, columns, columns};
}

void Arena::reset() {
  if (region_) region_->take(this);
  const size_t first = region_ ? 1 : 0;
  if (blocks_.size() < first) blocks_.push_back({region_->data(), region_->bytes()});
  if (blocks_.size() > first + (region_ ? 0 : 1)) {  // several blocks, or more than the region: one that is large enough
    size_t total = 0;
    for (size_t block = first; block < blocks_.size(); block++) {
      device_->release(blocks_[block].data);
      total += blocks_[block].size;
    }
    blocks_.resize(first);
    if (!region_) add_block(total);
  }
  used_ = before_ = 0;
}

}  // namespace gigpo
