// Rows to be scored or trained, flat, as they come from outside. It owns nothing: whoever made it keeps the arrays until the work
// is done.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace gigpo {

class TokenMasks;

// A row is tokens of which spans were sampled; the others are context. What is known of the sampled tokens lies in columns,
// [sampled]: span after span. Those that a loss does not read are null.
struct TrainingBatch {
  int64_t rows = 0, spans = 0;
  const int32_t* tokens = nullptr;       // of all rows, one after the other
  const int32_t* row_offsets = nullptr;  // [rows + 1]: where each row's tokens begin
  const int32_t* span_rows = nullptr;    // [spans]: whose it is; never decreasing
  const int32_t* span_begins = nullptr;  // [spans]: in its row, at least 1; spans of a row stand in order and apart
  const int32_t* span_counts = nullptr;  // [spans], at least 1

  const float* advantages = nullptr;
  const float* old_log_probs = nullptr;
  const float* reference_log_probs = nullptr;
  const float* gradients = nullptr;          // d loss / d log p, for HeadMode::linear
  const float* entropy_gradients = nullptr;  // d loss / d entropy, likewise
  const float* returns = nullptr;            // what a critic foretells before each of them
  const float* old_values = nullptr;         // what it foretold before this batch's updates

  const std::shared_ptr<TokenMasks>* constraints = nullptr;  // [spans]: what each was held to when it was sampled, null where nothing

  // Other tokens than the sampled ones, at the same places.
  int64_t top = 0;                       // so many at each; 0: none
  const int32_t* top_tokens = nullptr;   // [sampled][top]; null: the likeliest, which are to be found
  const float* top_gradients = nullptr;  // [sampled][top]: d loss / d log p, for HeadMode::linear

  // Sampled tokens of all spans.
  int64_t sampled() const;
  // Throws Error BAD_ARGUMENT where a token is outside the vocabulary, or none that its constraint allows, or anything of this is not so.
  void check(int64_t vocabulary) const;

 private:
  void check_constraint(int64_t span) const;
};

// What counts as one sequence in ratios, sequence means and counts: a span, or all spans of a row.
enum class Unit : int32_t { span, row };

// A batch by rows. Rows and spans that have nothing to be computed may be taken out.
struct BatchRows {
  struct Span {
    int64_t begin, count;
    int64_t column;    // of its first token
    float weight = 1;  // of each of its tokens in the loss
    TokenMasks* constraint = nullptr;
  };
  struct Row {
    const int32_t* tokens;
    int64_t span, spans;  // the first of them, and how many: at least one
  };
  std::vector<Row> rows;
  std::vector<Span> spans;

  explicit BatchRows(const TrainingBatch& batch);

  const Span* begin(const Row& row) const { return &spans[row.span]; }
  const Span* end(const Row& row) const { return begin(row) + row.spans; }
  // Up to the last sampled token; what follows is never looked at.
  int64_t length(const Row& row) const { return end(row)[-1].begin + end(row)[-1].count; }
  int64_t sampled(const Row& row) const;

  // Keeps the spans for which `wanted` holds, and the rows that still have one.
  template <class Wanted>
  void keep(Wanted wanted) {
    BatchRows kept;
    for (const Row& row : rows) {
      const int64_t first = int64_t(kept.spans.size());
      for (const Span* span = begin(row); span != end(row); span++) {
        if (wanted(*span)) kept.spans.push_back(*span);
      }
      const int64_t count = int64_t(kept.spans.size()) - first;
      if (count > 0) kept.rows.push_back({row.tokens, first, count});
    }
    *this = std::move(kept);
  }

 private:
  BatchRows() = default;
};

}  // namespace gigpo
