// Critic (value model) of PPO (Schulman et al., arXiv 1707.06347): a separate transformer that predicts the return before each sampled token,
//   value = hidden · score,  where hidden [H] is the hidden state after the final norm of the token before the sampled one.
// The critic starts as a copy of the policy's trained weights, with score = 0. With an adapter, the frozen model is shared with the policy.
#pragma once
#include "core/learner.h"

namespace gigpo {

// Report of the value loss; means over the sampled tokens.
struct ValueReport {
  double loss = 0;
  int64_t tokens = 0;
  double clip_fraction = 0, value = 0;
};

class Critic : public Learner {
 public:
  Critic(Device& device, const Learner& actor, Arena& arena);

  // Values of all sampled tokens of the batch, [sampled], in the order of its columns. Throws like Trainer::forward_backward.
  std::vector<float> predict(const TrainingBatch& batch, const std::atomic<bool>& cancelled);
  // Adds the gradient of the mean value loss (core/kernels/value_loss.h) for the batch's `returns` and `old_values`. `old_values` is not
  // read if `clip` is infinite. Throws like Trainer::forward_backward.
  ValueReport forward_backward(const TrainingBatch& batch, double clip, const std::atomic<bool>& cancelled);

 private:
  template <class Visit>
  void each_micro_batch(const TrainingBatch& batch, const ValueHeadOptions& options, const std::atomic<bool>& cancelled, Visit visit);

  Device& device_;
};

}  // namespace gigpo
