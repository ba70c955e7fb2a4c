// Application of token masks to logits on the device.
#pragma once
#include <memory>
#include <vector>

#include "core/flat_buffer.h"
#include "core/grammar/token_masks.h"

namespace gigpo {

class LogitMasker {
 public:
  explicit LogitMasker(Device& device) : device_(device) {}

  // Masks row r of the logits with masks[r], whose vocabulary has at most as many tokens as the logits have columns; null: all tokens are
  // allowed. Works on a few rows at a time to save memory, which is allocated at the first mask.
  void mask(Tensor logits, const TokenMask* const* masks);

  // Maximum device memory in bytes.
  static int64_t bytes(int64_t vocabulary) { return int64_t(rows_at_once * (1 + words_of(vocabulary)) * sizeof(uint32_t)); }

 private:
  static constexpr size_t rows_at_once = 64;
  static size_t words_of(int64_t vocabulary) { return size_t(vocabulary + 31) / 32; }
  void apply(Tensor logits, const std::vector<int32_t>& rows, const TokenMask* const* masks);

  Device& device_;
  std::unique_ptr<FlatBuffer> memory_;  // row indices, followed by mask words
};

}  // namespace gigpo
