// PPO's critic (Schulman et al., arXiv 1707.06347): a transformer of its own, which foretells before each sampled token what
// return will follow,
//   value = hidden · score,  hidden [H] after the final norm, of the token before the sampled one.
// It starts as a copy of what the policy trains, with score = 0. Beside an adapter the frozen model is the policy's own.
#pragma once
#include "core/learner.h"

namespace gigpo {

// Means over the sampled tokens.
struct ValueReport {
  double loss = 0;
  int64_t tokens = 0;
  double clip_fraction = 0, value = 0;
};

class Critic : public Learner {
 public:
  Critic(Device& device, const Learner& actor, Arena& arena);

  // Of all sampled tokens of the batch, as its columns are. Both throw as Trainer::forward_backward does.
  std::vector<float> predict(const TrainingBatch& batch, const std::atomic<bool>& cancelled);
  // Adds the gradient of the mean loss (core/kernels/value_loss.h) over the batch's `returns` and `old_values`; those are not
  // looked at where `clip` is infinite.
  ValueReport forward_backward(const TrainingBatch& batch, double clip, const std::atomic<bool>& cancelled);

 private:
  template <class Visit>
  void each_micro_batch(const TrainingBatch& batch, const ValueHeadOptions& options, const std::atomic<bool>& cancelled, Visit visit);

  Device& device_;
};

}  // namespace gigpo
