// One model on one device: its weights, what trains it and what samples from it. Not thread-safe: one thread drives it.
#pragma once
#include <memory>

#include "core/generator.h"
#include "core/trainer.h"

namespace gigpo {

struct EngineOptions {
  int threads = 0;                    // of the CPU device; 0: every core
  int64_t micro_batch_tokens = 2048;  // tokens trained at once: bounds the memory of activations
  int64_t cache_bytes = int64_t{256} << 20;
};

class Engine {
 public:
  Engine(const ModelConfig& config, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelConfig& config() const { return transformer_.config(); }
  const ModelLayout& layout() const { return transformer_.layout(); }
  Device& device() { return *device_; }
  Generator& generator() { return generator_; }
  Trainer& trainer() { return trainer_; }

  float* weights() { return weights_; }
  // Throws Error BAD_ARGUMENT where no reference was frozen.
  const float* reference() const;
  void freeze_reference();
  // To be called after writing to `weights`: cached keys, values and packed weights are stale.
  void weights_changed();

 private:
  std::unique_ptr<Device> device_;
  Transformer transformer_;
  Trainer trainer_;
  Generator generator_;
  float* weights_ = nullptr;
  float* reference_ = nullptr;
};

}  // namespace gigpo
