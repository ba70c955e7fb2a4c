#include "core/engine.h"

#include <algorithm>

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
      trainer_(*device_, transformer_, {options.micro_batch_tokens, options.longest_row, options.moments, region_.get()}),
      generator_(*device_, transformer_, {options.cache_bytes, options.step_tokens, region_.get()}) {
  if (adapter_) adapter_->zero();  // the policy starts as its model
}

Parameters& Engine::adapter() {
  if (!adapter_) throw Error("BAD_ARGUMENT", "This policy has no adapter: open it with lora.");
  return *adapter_;
}

void Engine::read_merged(int64_t index, int64_t offset, float* to, int64_t count) const {
  const Parameter& parameter = transformer_.layout().parameters.at(index);
  model_.read(parameter.offset + offset, to, count);
  const AdapterLayout::Pair pair = transformer_.adapter_layout().pair_of(parameter.name);
  if (count == 0 || !pair.a) return;
  const int64_t in = parameter.shape[1], rank = pair.b->shape[1];
  const int64_t first = offset / in, rows = (offset + count - 1) / in + 1 - first;
  std::vector<float> a(rank * in), b(rows * rank), sum(in);
  adapter_->read(pair.a->offset, a.data(), rank * in);
  adapter_->read(pair.b->offset + first * rank, b.data(), rows * rank);
  for (int64_t row = 0; row < rows; row++) {
    std::fill(sum.begin(), sum.end(), 0.f);
    for (int64_t r = 0; r < rank; r++) {
      const float factor = b[row * rank + r];
      for (int64_t column = 0; column < in; column++) sum[column] += factor * a[r * in + column];
    }
    const int64_t start = (first + row) * in;  // of the row, in the parameter
    const int64_t from = std::max(start, offset), end = std::min(start + in, offset + count);
    for (int64_t i = from; i < end; i++) to[i - offset] += transformer_.adapter().scale() * sum[i - start];
  }
}

PolicyTensors Engine::reference() const {
  if (!reference_) throw Error("BAD_ARGUMENT", "There is no reference policy: call reference.freeze() before training.");
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
