#include "core/other_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/top_tokens.h"

namespace gigpo {

OtherTokens::OtherTokens(Device& device, const TrainingBatch& batch, std::span<const int64_t> columns, double temperature,
                         int64_t vocabulary, int64_t rows, size_t lanes, Arena& arena)
    : device_(device), batch_(batch), columns_(columns), temperature_(temperature), vocabulary_(vocabulary) {
  if (batch_.top == 0) return;
  const int64_t most = rows * batch_.top;
  chunks_.resize(lanes);
  for (Chunk& chunk : chunks_) {
    chunk = {arena.array<int32_t>(most), batch_.top_gradients ? arena.floats(most) : nullptr, arena.floats(most)};
  }
  if (!finds()) return;
  inputs_.temperatures = arena.upload(std::vector<float>(size_t(rows), float(temperature_)));
  inputs_.top = arena.upload(std::vector<int32_t>(size_t(rows), int32_t(batch_.top)));
}

HeadTokens OtherTokens::of(int64_t lane, int64_t first, int64_t rows) {
  if (batch_.top == 0 || finds()) return {};
  const int64_t count = batch_.top;
  const Chunk& chunk = chunks_[lane];
  const auto collect = [&](const auto* column, auto& host) {
    host.resize(size_t(rows * count));
    for (int64_t r = 0; r < rows; r++) std::copy_n(column + columns_[first + r] * count, count, host.begin() + r * count);
  };
  const auto upload = [&](auto* to, const auto& host) { device_.upload(to, host.data(), host.size() * sizeof(host[0])); };
  collect(batch_.top_tokens, tokens_);
  if (batch_.top_gradients) {
    collect(batch_.top_gradients, numbers_);
    fold(rows);
    upload(chunk.gradients, numbers_);
  }
  upload(chunk.tokens, tokens_);
  return {count, chunk.tokens, chunk.gradients, chunk.log_probs};
}

// Merges duplicate tokens of a row: the first occurrence gets the sum of the gradients.
void OtherTokens::fold(int64_t rows) {
  const int64_t count = batch_.top;
  std::vector<int64_t> last(size_t(vocabulary_), -1);  // index at which each token was last seen
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = row * count; i < (row + 1) * count; i++) {
      int64_t& before = last[size_t(tokens_[i])];
      if (before < row * count) {
        before = i;
      } else {
        numbers_[before] += numbers_[i];
        tokens_[i] = no_token;
      }
    }
  }
}

void OtherTokens::write_scores(int64_t lane, int64_t first, Tensor logits, Scores& scores) {
  const int64_t count = batch_.top, rows = logits.rows;
  if (count == 0) return;
  const Chunk& chunk = chunks_[lane];
  tokens_.resize(size_t(rows * count)), numbers_.resize(size_t(rows * count));
  if (finds()) {
    device_.top_tokens(logits, inputs_, count, chunk.tokens, chunk.log_probs);
    device_.download(tokens_.data(), chunk.tokens, tokens_.size() * sizeof(int32_t));
  }
  device_.download(numbers_.data(), chunk.log_probs, numbers_.size() * sizeof(float));
  for (int64_t r = 0; r < rows; r++) {
    const int64_t from = r * count, to = columns_[first + r] * count;
    if (finds()) {
      fill_up(&tokens_[from], &numbers_[from]);
      std::copy_n(&tokens_[from], count, &scores.top_tokens[to]);
    }
    std::copy_n(&numbers_[from], count, &scores.top_log_probs[to]);
  }
}

// Fills up the top tokens if a constraint allows fewer than requested: with other tokens in ascending order, as improbable as masked tokens.
void OtherTokens::fill_up(int32_t* tokens, float* log_probs) const {
  int32_t* const end = tokens + batch_.top;
  int32_t* const found = std::find(tokens, end, no_token);
  if (found == end) return;
  const bool finite = found > tokens && !std::isnan(log_probs[0]);
  std::fill(log_probs + (found - tokens), log_probs + batch_.top,
            finite ? float(masked_logit / temperature_) : std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> taken(tokens, found);
  std::sort(taken.begin(), taken.end());
  auto next = taken.begin();
  int32_t token = 0;
  for (int32_t* to = found; to != end; token++) {
    if (next != taken.end() && *next == token) next++;
    else *to++ = token;
  }
}

}  // namespace gigpo
