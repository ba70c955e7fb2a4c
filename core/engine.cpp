#include "core/engine.h"

#include "core/error.h"

namespace gigpo {

static std::unique_ptr<Region> region_of(Device& device, int64_t bytes) {
  return bytes > 0 ? std::make_unique<Region>(device, size_t(bytes)) : nullptr;
}

Engine::Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options)
    : device_(std::move(device)),
      region_(region_of(*device_, options.region_bytes)),
      transformer_(*device_, config, options.adapter, options.recompute),
      model_(*device_, transformer_.layout().size, !options.adapter),
      adapter_(options.adapter ? std::make_unique<Parameters>(*device_, transformer_.trained_size(), true) : nullptr),
      trainer_(*device_, transformer_, {options.micro_batch_tokens, options.moments, region_.get()}),
      generator_(*device_, transformer_, {options.cache_bytes, options.step_tokens, region_.get()}) {}

Parameters& Engine::adapter() {
  if (!adapter_) throw Error("BAD_ARGUMENT", "This policy has no adapter: open it with lora.");
  return *adapter_;
}

PolicyTensors Engine::reference() const {
  if (!reference_) throw Error("BAD_ARGUMENT", "There is no reference policy: call freezeReference() before training.");
  if (adapter_) return {model_.values(), reference_->values()};
  return {reference_->values(), {}};
}

void Engine::freeze_reference() {
  const Tensor from = trained().values();
  if (!reference_) reference_ = std::make_unique<FlatBuffer>(*device_, from.type, from.columns);
  device_->copy(from, reference_->values());
  device_->weights_changed();  // it may hold an earlier reference in a form of its own
}

void Engine::weights_changed() {
  device_->weights_changed();
  generator_.weights_changed();
}

}  // namespace gigpo
