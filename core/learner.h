// A model with its weights and what trains it: the policy, or its critic.
#pragma once
#include <span>

#include "core/trainer.h"

namespace gigpo {

struct LearnerOptions {
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  bool trained = true;
  TrainerOptions trainer;
};

// What a learner has one number of for every weight: of the model's, or of those that are trained.
enum class Buffer {
  weights,  // the model's own
  merged,   // with the adapter in them, W + scale · B A, as merged() lays them out; can only be read
  adapter,
  gradients,
  first_moment,
  second_moment,
};

class Learner {
 public:
  // With an adapter, `base` is the frozen model beside which it stands: another's, or null for one of its own.
  Learner(Device& device, const ModelConfig& config, const LearnerOptions& options, Arena& arena, const Parameters* base = nullptr);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const LearnerOptions& options() const { return options_; }
  const Transformer& transformer() const { return transformer_; }
  const ModelLayout& merged() const { return merged_; }
  Buffer trained_buffer() const { return adapter_ ? Buffer::adapter : Buffer::weights; }
  const Parameters& trained() const { return adapter_ ? *adapter_ : *own_; }
  const Parameters& base() const { return base_; }
  PolicyTensors weights() const { return {base_.values(), adapter_ ? adapter_->values() : Tensor{}}; }
  // Another after every change of the weights.
  uint64_t version() const { return base_.version() + (adapter_ ? adapter_->version() : 0); }

  // From and to host memory, from element `offset` of a buffer on. Throw Error BAD_ARGUMENT for a buffer that it does not have.
  void write(Buffer buffer, int64_t offset, const std::byte* from, Stored type, int64_t count);
  void write(Buffer buffer, int64_t offset, std::span<const float> from) {
    write(buffer, offset, reinterpret_cast<const std::byte*>(from.data()), Stored::f32, int64_t(from.size()));
  }
  void read(Buffer buffer, int64_t offset, float* to, int64_t count);

  // Applies the gradients and clears them, as Trainer has it.
  StepReport optimizer_step(const OptimizerOptions& options);
  void clear_gradients() { trainer_.clear_gradients(); }
  int64_t steps() const { return trainer_.steps; }
  void set_steps(int64_t steps) { trainer_.steps = steps; }

 protected:
  Trainer& trainer() { return trainer_; }
  Parameters& trained() { return adapter_ ? *adapter_ : *own_; }

 private:
  template <class Use>
  void with_buffer(Buffer buffer, Use use);
  void read_merged(const Parameter& parameter, int64_t offset, float* to, int64_t count) const;

  LearnerOptions options_;
  Transformer transformer_;
  ModelLayout merged_;
  std::unique_ptr<Parameters> own_;
  const Parameters& base_;
  std::unique_ptr<Parameters> adapter_;
  Trainer trainer_;
};

}  // namespace gigpo
