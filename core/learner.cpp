#include "core/learner.h"

#include <algorithm>

#include "core/error.h"

namespace gigpo {

Learner::Learner(Device& device, const ModelConfig& config, const LearnerOptions& options, Arena& arena, const Parameters* base)
    : options_(options),
      transformer_(device, config, options.adapter, options.recompute),
      own_(base ? nullptr : std::make_unique<Parameters>(device, transformer_.layout().size, !options.adapter)),
      base_(base ? *base : *own_),
      adapter_(options.adapter ? std::make_unique<Parameters>(device, transformer_.trained_size(), true) : nullptr),
      trainer_(device, transformer_, arena, options.trainer) {
  if (adapter_) adapter_->zero();  // it starts as its model
}

Parameters& Learner::model() {
  if (!own_) throw Error("BAD_ARGUMENT", "Its adapter stands beside the policy's model: that is read and written there.");
  return *own_;
}

Parameters& Learner::adapter() {
  if (!adapter_) throw Error("BAD_ARGUMENT", "This policy has no adapter: open it with lora.");
  return *adapter_;
}

void Learner::read_merged(int64_t index, int64_t offset, float* to, int64_t count) const {
  const Parameter& parameter = transformer_.layout().parameters.at(index);
  if (adapter_ && transformer_.config().head == Head::value && parameter.offset == transformer_.layout().head)
    return adapter_->read(transformer_.adapter_layout().head + offset, to, count);
  base_.read(parameter.offset + offset, to, count);
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

}  // namespace gigpo
