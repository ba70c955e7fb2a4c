#include "core/kernels/value_loss.h"

#include <cmath>

#include "core/error.h"

namespace gigpo {

ValueLossReport value_loss(const ValueLossInput& input, double clip, double* gradient) {
  if (!input.old_values && !std::isinf(clip)) throw Error("BAD_ARGUMENT", "a clip needs the old values");
  const auto counts = [&](int64_t t) { return !input.mask || input.mask[t] != 0; };
  int64_t tokens = 0;
  for (int64_t t = 0; t < input.tokens; t++) tokens += counts(t);
  ValueLossReport report;
  for (int64_t t = 0; t < input.tokens; t++) {
    gradient[t] = 0;
    if (!counts(t)) continue;  // values of masked tokens are not read
    const TokenValueLoss token = token_value_loss(input.values[t], input.old_values ? input.old_values[t] : 0, input.returns[t], clip);
    report.loss += token.loss / double(tokens);
    report.clip_fraction += double(token.clipped) / double(tokens);
    gradient[t] = token.gradient / double(tokens);
  }
  return report;
}

}  // namespace gigpo
