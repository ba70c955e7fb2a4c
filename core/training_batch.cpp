#include "core/training_batch.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/grammar/token_masks.h"

namespace gigpo {

void BatchImages::check(int64_t rows) const {
  const auto within = [](int64_t value, int64_t least, size_t most) { return value >= least && value <= int64_t(most); };
  bool fits = int64_t(offsets.size()) == rows + 1 && offsets[0] == 0 && offsets.back() == int64_t(indices.size());
  for (size_t i = 1; fits && i < offsets.size(); i++) fits = within(offsets[i], offsets[i - 1], indices.size());
  for (const int32_t index : indices) fits = fits && index >= 0 && size_t(index) < images.size();
  if (!fits) throw Error("BAD_ARGUMENT", "imageOffsets and imageIndices do not name an image of each row.");
}

int64_t TrainingBatch::sampled() const { return std::accumulate(span_counts, span_counts + spans, int64_t{0}); }

void TrainingBatch::check(int64_t vocabulary) const {
  const auto require = [](bool right, const char* what, int64_t which) {
    if (!right) throw Error("BAD_ARGUMENT", std::string(what) + " (" + std::to_string(which) + ").");
  };
  require(row_offsets[0] == 0, "the first row does not begin at token 0", row_offsets[0]);
  for (int64_t row = 0; row < rows; row++) {
    require(row_offsets[row] <= row_offsets[row + 1], "a row's tokens end before they begin", row);
  }
  bool known = images != nullptr;  // tokens with images have been checked
  if (!known) {
    known = true;  // no early exit, so that the compiler can vectorize the loop
    for (int64_t i = 0; i < row_offsets[rows]; i++) known &= uint32_t(tokens[i]) < uint32_t(vocabulary);
  }
  if (!known) {
    const auto wrong = std::find_if(tokens, tokens + row_offsets[rows], [&](int32_t t) { return t < 0 || t >= vocabulary; });
    const int64_t row = std::upper_bound(row_offsets, row_offsets + rows, wrong - tokens) - row_offsets - 1;
    throw Error("BAD_ARGUMENT", "sequences[" + std::to_string(row) + "]: token " + std::to_string(*wrong) +
                                    " is outside the model's vocabulary of " + std::to_string(vocabulary) + ".");
  }
  int64_t row = 0, end = 1;
  for (int64_t span = 0; span < spans; span++) {
    require(span_rows[span] >= row && span_rows[span] < rows, "a span has an invalid row, or the spans are out of order", span);
    if (span_rows[span] > row) row = span_rows[span], end = 1;
    require(span_begins[span] >= end, "a span begins at the first token of its row, or overlaps the previous span", span);
    require(span_counts[span] >= 1, "a span is empty", span);
    end = int64_t{span_begins[span]} + span_counts[span];
    require(end <= row_offsets[row + 1] - row_offsets[row], "a span extends beyond its row", span);
    if (!constraints || !constraints[span]) continue;
    constraints[span]->check_model(vocabulary);
    check_constraint(span);
  }
  if (top > vocabulary)
    throw Error("BAD_ARGUMENT", "top is " + std::to_string(top) + " tokens per position, but the model's vocabulary has " +
                                    std::to_string(vocabulary) + ".");
  const int64_t others = top_tokens ? top * sampled() : 0;
  if (const auto* wrong = std::find_if(top_tokens, top_tokens + others, [&](int32_t t) { return t < 0 || t >= vocabulary; });
      wrong != top_tokens + others)
    throw Error("BAD_ARGUMENT", "top.tokens contains token " + std::to_string(*wrong) + ", outside the model's vocabulary of " +
                                    std::to_string(vocabulary) + ".");
}

void TrainingBatch::check_constraint(int64_t span) const {
  const int32_t row = span_rows[span], *first = tokens + row_offsets[row] + span_begins[span];
  try {
    Grammar::State state = constraints[span]->start();
    for (const int32_t* token = first; token < first + span_counts[span]; token++) state = constraints[span]->next(state, *token);
  } catch (const Error& error) {
    throw Error(error.code, "sequences[" + std::to_string(row) + "]: " + error.what());
  }
}

BatchRows::BatchRows(const TrainingBatch& batch) : images(batch.images) {
  int64_t column = 0, last = -1;
  for (int64_t i = 0; i < batch.spans; i++) {
    if (batch.span_rows[i] != last) {
      last = batch.span_rows[i];
      rows.push_back({batch.tokens + batch.row_offsets[last], i, 0});
    }
    rows.back().spans++;
    spans.push_back({batch.span_begins[i], batch.span_counts[i], column, 1, batch.constraints ? batch.constraints[i].get() : nullptr});
    column += batch.span_counts[i];
  }
}

int64_t BatchRows::sampled(const Row& row) const {
  int64_t count = 0;
  for (const Span* span = begin(row); span != end(row); span++) count += span->count;
  return count;
}

}  // namespace gigpo
