#include <cmath>

#include "core/kernels/hellinger.h"
#include "core/kernels/row_sweeps.h"

namespace gigpo {

float hellinger(int64_t vocab, const float* z, const float* w, double temperature) {
  const cpu::RowSweeps& sweeps = cpu::row_sweeps(cpu::isa());
  const auto inverse = float(1 / temperature);
  const auto scale_of = [&](const float* logits) -> cpu::RootScale {
    const float max = sweeps.max(vocab, logits);
    return {max, float(0.5 * std::log(sweeps.sums(vocab, logits, max, inverse, nullptr).exponentials))};
  };
  return float(hellinger_of(sweeps.root_distance(vocab, z, scale_of(z), w, scale_of(w), inverse)));
}

}  // namespace gigpo
