// Training rows that own their data, for tests and benchmarks, and the flat batch built from them.
#pragma once
#include <vector>

#include "core/training_batch.h"

namespace gigpo::test {

// Columns are [sampled tokens of the row], or empty.
struct TrainingRow {
  struct Span {
    int64_t begin, count;
    std::shared_ptr<TokenMasks> constraint;
  };
  std::vector<int32_t> tokens;
  std::vector<Span> spans;
  std::vector<float> advantages, old_log_probs, reference_log_probs, gradients, entropy_gradients;
  std::vector<float> returns, old_values;

  int64_t sampled() const {
    int64_t count = 0;
    for (const Span& span : spans) count += span.count;
    return count;
  }
};

// Row of a prompt and its completion.
inline TrainingRow step_row(std::vector<int32_t> prompt, const std::vector<int32_t>& reply, float advantage = 0,
                            std::shared_ptr<TokenMasks> constraint = nullptr) {
  TrainingRow row;
  row.spans = {{int64_t(prompt.size()), int64_t(reply.size()), std::move(constraint)}};
  row.tokens = std::move(prompt);
  row.tokens.insert(row.tokens.end(), reply.begin(), reply.end());
  row.advantages.assign(reply.size(), advantage);
  return row;
}

class FlatBatch {
 public:
  explicit FlatBatch(const std::vector<TrainingRow>& rows) {
    for (const TrainingRow& row : rows) {
      for (const TrainingRow::Span& span : row.spans) {
        span_rows_.push_back(int32_t(offsets_.size() - 1));
        begins_.push_back(int32_t(span.begin));
        counts_.push_back(int32_t(span.count));
        constraints_.push_back(span.constraint);
      }
      append(tokens_, row.tokens);
      offsets_.push_back(int32_t(tokens_.size()));
      append(advantages_, row.advantages);
      append(old_, row.old_log_probs);
      append(reference_, row.reference_log_probs);
      append(gradients_, row.gradients);
      append(entropy_gradients_, row.entropy_gradients);
      append(returns_, row.returns);
      append(old_values_, row.old_values);
    }
    const auto column = [](const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); };
    batch_ = {int64_t(rows.size()),   int64_t(begins_.size()), tokens_.data(), offsets_.data(),    span_rows_.data(),
              begins_.data(),         counts_.data(),          column(advantages_), column(old_), column(reference_),
              column(gradients_), column(entropy_gradients_), column(returns_), column(old_values_), constraints_.data()};
  }
  FlatBatch(const FlatBatch&) = delete;

  operator const TrainingBatch&() const { return batch_; }

 private:
  template <class T>
  static void append(std::vector<T>& all, const std::vector<T>& some) {
    all.insert(all.end(), some.begin(), some.end());
  }

  std::vector<int32_t> tokens_, offsets_{0}, span_rows_, begins_, counts_;
  std::vector<float> advantages_, old_, reference_, gradients_, entropy_gradients_, returns_, old_values_;
  std::vector<std::shared_ptr<TokenMasks>> constraints_;
  TrainingBatch batch_;
};

}  // namespace gigpo::test
