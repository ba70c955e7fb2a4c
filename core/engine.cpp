#include "core/engine.h"

#include "core/error.h"

namespace gigpo {

Engine::Engine(const ModelConfig& config, const EngineOptions& options)
    : device_(make_cpu_device(options.threads)),
      transformer_(*device_, config),
      trainer_(*device_, transformer_, options.micro_batch_tokens),
      generator_(*device_, transformer_, {options.cache_bytes}),
      weights_(static_cast<float*>(device_->allocate(layout().size * sizeof(float)))) {}

Engine::~Engine() {
  device_->release(weights_);
  device_->release(reference_);
}

const float* Engine::reference() const {
  if (!reference_) throw Error("BAD_ARGUMENT", "There is no reference policy: call freezeReference() before training.");
  return reference_;
}

void Engine::freeze_reference() {
  const size_t bytes = layout().size * sizeof(float);
  if (!reference_) reference_ = static_cast<float*>(device_->allocate(bytes));
  const int64_t size = layout().size;
  device_->copy({weights_, Type::f32, 1, size, size}, {reference_, Type::f32, 1, size, size});
  device_->weights_changed();  // it may hold an earlier reference in a form of its own
}

void Engine::weights_changed() {
  device_->weights_changed();
  generator_.weights_changed();
}

}  // namespace gigpo
