// Batch of sequences to score or train, as flat arrays of the caller. Non-owning: the arrays must stay valid until the call has finished.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace gigpo {

class TokenMasks;
struct Image;
struct ImageFeatures;
using ImagesOfSequence = std::vector<std::shared_ptr<ImageFeatures>>;

// Images of the rows of a batch: those of row r are images[indices[i]] for i in [offsets[r], offsets[r + 1]).
struct BatchImages {
  std::vector<std::shared_ptr<const Image>> images;
  std::vector<int32_t> offsets, indices;

  // Throws Error BAD_ARGUMENT if offsets and indices do not name images of `rows` rows.
  void check(int64_t rows) const;
};

// Batch of sequences (rows). A row consists of sampled spans and context tokens. Values of the sampled tokens are columns, [sampled], in
// the order of the spans. Columns that the loss does not read are null.
struct TrainingBatch {
  int64_t rows = 0, spans = 0;
  const int32_t* tokens = nullptr;       // tokens of all rows, concatenated
  const int32_t* row_offsets = nullptr;  // [rows + 1]: index of the first token of each row
  const int32_t* span_rows = nullptr;    // [spans]: row of each span; non-decreasing
  const int32_t* span_begins = nullptr;  // [spans]: first token within the row, at least 1; spans of a row are ordered and disjoint
  const int32_t* span_counts = nullptr;  // [spans]: number of tokens, at least 1

  const float* advantages = nullptr;
  const float* old_log_probs = nullptr;
  const float* reference_log_probs = nullptr;
  const float* gradients = nullptr;          // d loss / d log p, for HeadMode::linear
  const float* entropy_gradients = nullptr;  // d loss / d entropy, for HeadMode::linear
  const float* returns = nullptr;            // targets of the critic
  const float* old_values = nullptr;         // predictions of the critic before the updates on this batch

  const std::shared_ptr<TokenMasks>* constraints = nullptr;  // [spans]: constraint that the span was sampled under; null: unconstrained

  const BatchImages* given_images = nullptr;  // null: no row has images. Engine::place replaces them by features.
  // Features that tokens below 0 stand for; null: there are no such tokens.
  const ImagesOfSequence* images = nullptr;

  // Tokens other than the sampled ones, at the same positions.
  int64_t top = 0;                       // number of tokens per position; 0: none
  const int32_t* top_tokens = nullptr;   // [sampled][top]; null: find the most likely tokens
  const float* top_gradients = nullptr;  // [sampled][top]: d loss / d log p, for HeadMode::linear

  // Number of sampled tokens in all spans.
  int64_t sampled() const;
  // Throws Error BAD_ARGUMENT if a token is outside the vocabulary or not allowed by its constraint, or if the arrays violate the rules above.
  void check(int64_t vocabulary) const;

 private:
  void check_constraint(int64_t span) const;
};

// Unit that counts as one sequence in ratios, sequence means and counts: a span, or all spans of a row.
enum class Unit : int32_t { segment, sequence };

// Rows and spans of a batch. Rows and spans without anything to compute can be removed with `keep`.
struct BatchRows {
  struct Span {
    int64_t begin, count;
    int64_t column;    // column of the first token
    float weight = 1;  // weight of each token in the loss
    TokenMasks* constraint = nullptr;
  };
  struct Row {
    const int32_t* tokens;
    int64_t span, spans;  // index of the first span, and number of spans, at least 1
  };
  std::vector<Row> rows;
  std::vector<Span> spans;
  const ImagesOfSequence* images = nullptr;  // as TrainingBatch::images

  explicit BatchRows(const TrainingBatch& batch);

  const Span* begin(const Row& row) const { return &spans[row.span]; }
  const Span* end(const Row& row) const { return begin(row) + row.spans; }
  // Number of tokens up to and including the last sampled one; later tokens are ignored.
  int64_t length(const Row& row) const { return end(row)[-1].begin + end(row)[-1].count; }
  int64_t sampled(const Row& row) const;

  // Keeps the spans for which `wanted` is true, and the rows that still have a span.
  template <class Wanted>
  void keep(Wanted wanted) {
    BatchRows kept;
    kept.images = images;
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
