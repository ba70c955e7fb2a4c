#include "core/grammar/logit_masks.h"

namespace gigpo {

void LogitMasker::mask(Tensor logits, const TokenMask* const* masks) {
  std::vector<int32_t> rows;
  for (int64_t row = 0; row < logits.rows; row++) {
    if (masks[row]) rows.push_back(int32_t(row));
    if (rows.size() == rows_at_once) apply(logits, rows, masks), rows.clear();
  }
  if (!rows.empty()) apply(logits, rows, masks);
}

void LogitMasker::apply(Tensor logits, const std::vector<int32_t>& rows, const TokenMask* const* masks) {
  const size_t words = words_of(logits.columns);
  std::vector<uint32_t> host(rows.begin(), rows.end());
  host.reserve(rows.size() * (1 + words));
  for (const int32_t row : rows) {
    host.insert(host.end(), masks[row]->begin(), masks[row]->end());
    host.resize(host.size() + words - masks[row]->size(), 0);  // tokens beyond the mask's vocabulary are not allowed
  }
  if (!memory_) memory_ = std::make_unique<FlatBuffer>(device_, Type::f32, bytes(logits.columns) / int64_t{sizeof(float)});
  device_.upload(memory_->data(), host.data(), host.size() * sizeof(uint32_t));
  const auto* numbers = static_cast<const int32_t*>(memory_->data());
  device_.mask_logits(logits, {numbers, reinterpret_cast<const uint32_t*>(numbers + rows.size()), int64_t(rows.size()), int64_t(words)});
}

}  // namespace gigpo
