// A policy on one device, what samples from it, and its critic where one was asked for. Not thread-safe: one thread drives it.
#pragma once
#include <memory>

#include "core/critic.h"
#include "core/generator.h"

namespace gigpo {

struct EngineOptions {
  int64_t micro_batch_tokens = 2048;  // tokens trained at once: bounds the memory of activations; a longer row is trained alone
  int64_t longest_row = 0;            // tokens of the longest that may come; 0: as many as there is room for, by fit_options
  int64_t cache_bytes = int64_t{256} << 20;
  int64_t step_tokens = 1024;  // new tokens in one step of sampling
  // Sampling's cache and training's activations take turns in one region of this size; 0: each has memory of its own.
  int64_t region_bytes = 0;
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  bool choose_recompute = false;  // the least that fits, by fit_options
  Type moments = Type::f32;
  bool share_prefixes = true;  // see TrainerOptions
  bool trained = true;         // false: weights are kept as the device computes with them, and no optimizer's step is taken; by fit_options
};

// Whose log-probabilities.
enum class Policy { current, reference };

class Engine {
 public:
  Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Device& device() { return *device_; }
  const Transformer& transformer() const { return actor_.transformer(); }

  // The policy's weights, gradients and moments, and AdamW's steps over them.
  Learner& actor() { return actor_; }
  // As core/initialize.h has it. Throws Error ABORTED once `cancelled` is set.
  void initialize(double deviation, Key key, const std::atomic<bool>& cancelled);

  // Sampling, as Generator has it: what was asked for goes on by one step after the other, with the weights as they then are.
  void submit(SampleRequest request) { generator_.submit(std::move(request)); }
  void cancel(const std::unordered_set<uint64_t>& ids) { generator_.cancel(ids); }
  void finish(const std::unordered_set<uint64_t>& ids, std::vector<Completion>& done) { generator_.finish(ids, done); }
  bool sampling() const { return !generator_.idle(); }
  // A step that throws leaves nothing under way.
  void sample_step(std::vector<Completion>& done);
  void abandon() { generator_.abandon(); }
  // Whether scores and logits may be computed between two steps, after `catch_up`: not where they would take the cache's memory.
  bool scores_between() const { return !region_; }
  void catch_up(std::vector<Completion>& done) { generator_.catch_up(done); }
  std::shared_ptr<const GeneratorCounts> counts() const { return generator_.counts(); }

  // Training, as Trainer has it.
  LossReport forward_backward(const TrainingBatch& batch, const TrainingLoss& loss, const std::atomic<bool>& cancelled);
  // With `compare` also how far each distribution lies from the reference's. Throws Error BAD_ARGUMENT where no reference was frozen.
  Scores scores(Policy of, const TrainingBatch& batch, float temperature, const std::atomic<bool>& cancelled, bool compare = false);
  std::vector<float> logits(const std::vector<int32_t>& tokens);
  // The most bytes that activations have taken, the policy's or its critic's.
  size_t peak_bytes() const { return activations_.peak(); }

  // Keeps a copy of what is trained; that of an adapter costs next to nothing.
  void freeze_reference();

  // Made of the policy as it is when this is first called.
  Critic& critic();

 private:
  struct Actor : Learner {
    using Learner::Learner;
    using Learner::trainer;
  };
  PolicyTensors weights_of(Policy of) const;

  std::unique_ptr<Device> device_;
  std::unique_ptr<Region> region_;
  Arena activations_;  // of whoever is trained
  Actor actor_;
  std::unique_ptr<FlatBuffer> reference_;
  std::unique_ptr<Critic> critic_;
  Generator generator_;
  uint64_t sampled_version_ = 0;  // of the weights that the cache's keys and values are of
};

}  // namespace gigpo
