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
};

class Engine {
 public:
  Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Device& device() { return *device_; }
  Generator& generator() { return generator_; }

  // The policy. After writing to its weights, call `weights_changed`.
  Learner& actor() { return actor_; }
  const Transformer& transformer() const { return actor_.transformer(); }
  Trainer& trainer() { return actor_.trainer(); }
  Parameters& model() { return actor_.model(); }
  Parameters& adapter() { return actor_.adapter(); }
  Parameters& trained() { return actor_.trained(); }
  PolicyTensors policy() const { return actor_.weights(); }
  // Cached keys and values are stale.
  void weights_changed();

  // Throws Error BAD_ARGUMENT where no reference was frozen.
  PolicyTensors reference() const;
  // Keeps a copy of what is trained; that of an adapter costs next to nothing.
  void freeze_reference();

  // Made of the policy as it is when this is first called.
  Critic& critic();

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Region> region_;
  Arena activations_;  // of whoever is trained
  Learner actor_;
  std::unique_ptr<FlatBuffer> reference_;
  std::unique_ptr<Critic> critic_;
  Generator generator_;
};

}  // namespace gigpo
