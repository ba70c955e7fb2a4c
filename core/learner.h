// A model with its weights and what trains it: the policy, or its critic.
#pragma once
#include "core/trainer.h"

namespace gigpo {

struct LearnerOptions {
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  TrainerOptions trainer;
};

class Learner {
 public:
  // With an adapter, `base` is the frozen model beside which it stands: another's, or null for one of its own.
  Learner(Device& device, const ModelConfig& config, const LearnerOptions& options, Arena& arena, const Parameters* base = nullptr);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const LearnerOptions& options() const { return options_; }
  const Transformer& transformer() const { return transformer_; }
  Trainer& trainer() { return trainer_; }

  Parameters& model();    // Throws Error BAD_ARGUMENT where it is another's.
  Parameters& adapter();  // Throws Error BAD_ARGUMENT where there is none.
  Parameters& trained() { return adapter_ ? *adapter_ : *own_; }
  const Parameters& trained() const { return adapter_ ? *adapter_ : *own_; }
  const Parameters& base() const { return base_; }
  PolicyTensors weights() const { return {base_.values(), adapter_ ? adapter_->values() : Tensor{}}; }
  // Elements of one of the model's parameters with the adapter merged in: W + (alpha / rank) · B A. Host memory.
  void read_merged(int64_t parameter, int64_t offset, float* to, int64_t count) const;

 private:
  LearnerOptions options_;
  Transformer transformer_;
  std::unique_ptr<Parameters> own_;
  const Parameters& base_;
  std::unique_ptr<Parameters> adapter_;
  Trainer trainer_;
};

}  // namespace gigpo
