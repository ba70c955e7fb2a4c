// What a grammar says of logits, brought to the device that they are on.
#pragma once
#include <memory>
#include <vector>

#include "core/flat_buffer.h"
#include "core/grammar/token_masks.h"

namespace gigpo {

class LogitMasker {
 public:
  explicit LogitMasker(Device& device) : device_(device) {}

  // Row r of the logits by masks[r], over no more tokens than they have columns; null: everything may be. So many rows at a time that
  // they are little memory, which is taken when the first of them comes.
  void mask(Tensor logits, const TokenMask* const* masks);

  // Of the device's memory, at most.
  static int64_t bytes(int64_t vocabulary) { return int64_t(rows_at_once * (1 + words_of(vocabulary)) * sizeof(uint32_t)); }

 private:
  static constexpr size_t rows_at_once = 64;
  static size_t words_of(int64_t vocabulary) { return size_t(vocabulary + 31) / 32; }
  void apply(Tensor logits, const std::vector<int32_t>& rows, const TokenMask* const* masks);

  Device& device_;
  std::unique_ptr<FlatBuffer> memory_;  // rows, and behind them their words
};

}  // namespace gigpo
