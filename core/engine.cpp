#include "core/engine.h"

#include "core/error.h"

namespace gigpo {

static std::unique_ptr<Region> region_of(Device& device, int64_t bytes) {
  return bytes > 0 ? std::make_unique<Region>(device, size_t(bytes)) : nullptr;
}

Engine::Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options)
    : device_(std::move(device)),
      region_(region_of(*device_, options.region_bytes)),
      activations_(*device_, region_.get()),
      actor_(*device_, config,
             {options.adapter, options.recompute, {options.micro_batch_tokens, options.longest_row, options.moments, options.share_prefixes}},
             activations_),
      generator_(*device_, transformer(), {options.cache_bytes, options.step_tokens, region_.get()}) {}

PolicyTensors Engine::reference() const {
  if (!reference_) throw Error("BAD_ARGUMENT", "There is no reference policy: call reference.freeze() before training.");
  if (transformer().adapted()) return {policy().model, reference_->values()};
  return {reference_->values(), {}};
}

void Engine::freeze_reference() {
  const Tensor from = trained().values();
  if (!reference_) reference_ = std::make_unique<FlatBuffer>(*device_, from.type, from.columns);
  device_->copy(from, reference_->values());
  device_->weights_changed(reference_->values());  // it may hold an earlier reference in a form of its own
}

Critic& Engine::critic() {
  if (!critic_) critic_ = std::make_unique<Critic>(*device_, actor_, activations_);
  return *critic_;
}

void Engine::weights_changed() { generator_.weights_changed(); }

}  // namespace gigpo
