#include "core/engine.h"

#include <utility>

#include "core/error.h"
#include "core/initialize.h"

namespace gigpo {

static std::unique_ptr<Region> region_of(Device& device, int64_t bytes) {
  return bytes > 0 ? std::make_unique<Region>(device, size_t(bytes)) : nullptr;
}

Engine::Engine(std::unique_ptr<Device> device, const ModelConfig& config, const EngineOptions& options)
    : device_(std::move(device)),
      region_(region_of(*device_, options.region_bytes)),
      activations_(*device_, region_.get()),
      actor_(*device_, config,
             {options.adapter, options.recompute, options.trained, {options.micro_batch_tokens, options.longest_row, options.moments, options.share_prefixes, options.replica}},
             activations_),
      generator_(*device_, transformer(), {options.cache_bytes, options.step_tokens, device_->traits().shared_tokens, region_.get()}) {}

void Engine::initialize(double deviation, Key key, const std::atomic<bool>& cancelled) {
  std::vector<float> weights(transformer().layout().size);
  gigpo::initialize(transformer().config(), transformer().layout(), deviation, key, cancelled, weights.data());
  actor_.write(Buffer::weights, 0, weights);
}

void Engine::sample_step(std::vector<Completion>& done) {
  if (actor_.version() != sampled_version_) generator_.weights_changed();
  sampled_version_ = actor_.version();
  try {
    generator_.step(actor_.weights(), done);
  } catch (...) {
    generator_.abandon();
    throw;
  }
}

LossReport Engine::forward_backward(const TrainingBatch& batch, const TrainingLoss& loss, const std::atomic<bool>& cancelled) {
  return actor_.trainer().forward_backward(actor_.weights(), batch, loss, cancelled);
}

Scores Engine::scores(Policy of, const TrainingBatch& batch, float temperature, const std::atomic<bool>& cancelled, bool compare) {
  if (!compare) return actor_.trainer().scores(weights_of(of), batch, temperature, cancelled);
  const PolicyTensors reference = weights_of(Policy::reference);
  return actor_.trainer().scores(weights_of(of), batch, temperature, cancelled, &reference);
}

std::vector<float> Engine::logits(const std::vector<int32_t>& tokens) { return actor_.trainer().logits(actor_.weights(), tokens); }

PolicyTensors Engine::weights_of(Policy of) const {
  if (of == Policy::current) return actor_.weights();
  if (!reference_) throw Error("BAD_ARGUMENT", "There is no reference policy: call reference.freeze() before training.");
  if (transformer().adapted()) return {actor_.weights().model, reference_->values()};
  return {reference_->values(), {}};
}

void Engine::freeze_reference() {
  const Tensor from = std::as_const(actor_).trained().values();
  if (!reference_) reference_ = std::make_unique<FlatBuffer>(*device_, from.type, from.columns);
  device_->copy(from, reference_->values());
  device_->weights_changed(reference_->values());  // the device may keep a packed copy of an earlier reference
}

Critic& Engine::critic() {
  if (!critic_) critic_ = std::make_unique<Critic>(*device_, actor_, activations_);
  return *critic_;
}

}  // namespace gigpo
