// Transfer of tokens other than the sampled ones between a batch and the head, chunk by chunk. Given tokens are uploaded with their loss
// gradients; most likely tokens are found on the device; log-probabilities are downloaded. Each token of a chunk takes 8 bytes on the
// device, and 4 more for a gradient.
#pragma once
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/training_batch.h"

namespace gigpo {

// Scores of all sampled tokens of a batch, in the order of its columns. A vector is empty if not requested.
struct Scores {
  std::vector<float> log_probs, entropies, hellingers;
  std::vector<int32_t> top_tokens;  // [sampled][top], if the most likely tokens were requested
  std::vector<float> top_log_probs;
};

class OtherTokens {
 public:
  // Prepares the transfer for the sampled tokens in `columns`. A chunk has at most `rows` rows; `lanes` chunks are in progress at once.
  OtherTokens(Device& device, const TrainingBatch& batch, std::span<const int64_t> columns, double temperature, int64_t vocabulary,
              int64_t rows, size_t lanes, Arena& arena);

  // Argument of the head for `rows` rows from `first` on; empty if the most likely tokens are to be found.
  HeadTokens of(int64_t lane, int64_t first, int64_t rows);
  // Writes the results of these rows into the columns of `scores`, after the head has scored `logits`.
  void write_scores(int64_t lane, int64_t first, Tensor logits, Scores& scores);

 private:
  struct Chunk {
    int32_t* tokens;
    float *gradients, *log_probs;  // see HeadTokens; `gradients` is null if there are none
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
  SampleInputs inputs_{};         // parameters for finding the most likely tokens
  std::vector<int32_t> tokens_;   // tokens of one chunk, on the host
  std::vector<float> numbers_;    // gradients or log-probabilities of one chunk, on the host
};

}  // namespace gigpo
