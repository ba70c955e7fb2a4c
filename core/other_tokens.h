// Other tokens than the sampled ones, on their way between a batch and the head of a pass, chunk by chunk: those that are given are
// brought to the device, with what a loss says of them; the likeliest are found there; log-probabilities are brought back. Each token of a
// chunk takes 8 bytes on the device, and 4 for its gradient.
#pragma once
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/training_batch.h"

namespace gigpo {

// Of all sampled tokens of a batch, as its columns are; empty where it was not asked for.
struct Scores {
  std::vector<float> log_probs, entropies, hellingers;
  std::vector<int32_t> top_tokens;  // [sampled][top], where the likeliest were asked for
  std::vector<float> top_log_probs;
};

class OtherTokens {
 public:
  // Of the sampled tokens in these columns; a chunk has at most so many rows, and `lanes` of them are under way at once.
  OtherTokens(Device& device, const TrainingBatch& batch, std::span<const int64_t> columns, double temperature, int64_t vocabulary,
              int64_t rows, size_t lanes, Arena& arena);

  // What the head is given for the rows from `first` on; nothing where the likeliest are to be found.
  HeadTokens of(int64_t lane, int64_t first, int64_t rows);
  // Into the columns of those rows, once the head has scored these logits.
  void tell(int64_t lane, int64_t first, Tensor logits, Scores& scores);

 private:
  struct Chunk {
    int32_t* tokens;
    float *gradients, *log_probs;  // as HeadTokens has them; gradients are null where there are none
  };
  bool finds() const { return batch_.top > 0 && !batch_.top_tokens; }
  void fold(int64_t rows);
  void fill_up(int32_t* tokens, float* log_probs) const;

  Device& device_;
  const TrainingBatch& batch_;
  const std::span<const int64_t> columns_;
  const double temperature_;
  const int64_t vocabulary_;
  std::vector<Chunk> chunks_;
  SampleInputs inputs_{};         // how the likeliest are to be found
  std::vector<int32_t> tokens_;   // of one chunk, on the host
  std::vector<float> numbers_;    // gradients, or log-probabilities
};

}  // namespace gigpo
