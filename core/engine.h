// One model on one device: its weights, what trains it and what samples from it. Not thread-safe: one thread drives it.
#pragma once
#include <memory>

#include "core/generator.h"
#include "core/trainer.h"

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
};

class Engine {
 public:
  Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Transformer& transformer() const { return transformer_; }
  Device& device() { return *device_; }
  Generator& generator() { return generator_; }
  Trainer& trainer() { return trainer_; }

  // After writing to either, call `weights_changed`.
  Parameters& model() { return model_; }
  Parameters& adapter();  // Throws Error BAD_ARGUMENT where there is none.
  Parameters& trained() { return transformer_.adapted() ? *adapter_ : model_; }
  // Elements of one of the model's parameters with the adapter merged in: W + (alpha / rank) · B A. Host memory.
  void read_merged(int64_t parameter, int64_t offset, float* to, int64_t count) const;
  // Cached keys, values and packed weights are stale.
  void weights_changed();

  PolicyTensors policy() const { return {model_.values(), adapter_ ? adapter_->values() : Tensor{}}; }
  // Throws Error BAD_ARGUMENT where no reference was frozen.
  PolicyTensors reference() const;
  // Keeps a copy of what is trained; that of an adapter costs next to nothing.
  void freeze_reference();

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Region> region_;
  Transformer transformer_;
  Parameters model_;
  std::unique_ptr<Parameters> adapter_;
  std::unique_ptr<FlatBuffer> reference_;
  Trainer trainer_;
  Generator generator_;
};

}  // namespace gigpo
