#include "core/kernels/top_tokens.h"

#include <algorithm>
#include <cmath>

#include "core/device.h"
#include "core/kernels/row_sweeps.h"

namespace gigpo {

void top_tokens(int64_t vocab, const float* logits, float temperature, int64_t count, int32_t* tokens, float* log_probs) {
  if (count == 0) return;
  // A token enters before the first that is less likely; so equals stay in the order in which they came.
  int64_t found = 0;
  for (int64_t token = 0; token < vocab; token++) {
    const float logit = logits[token];
    if (!is_possible(logit) || (found == count && !(logit > logits[tokens[found - 1]]))) continue;
    int64_t at = found < count ? found++ : found - 1;
    for (; at > 0 && logits[tokens[at - 1]] < logit; at--) tokens[at] = tokens[at - 1];
    tokens[at] = int32_t(token);
  }
  std::fill(tokens + found, tokens + count, no_token);
  const cpu::RowSweeps& sweeps = cpu::row_sweeps(cpu::isa());
  const double inverse = temperature == 0 ? 1 : 1 / double(temperature);
  const float top = sweeps.max(vocab, logits);
  const double log_sum = std::log(sweeps.sums(vocab, logits, top, float(inverse), nullptr).exponentials);
  for (int64_t i = 0; i < count; i++)
    log_probs[i] = i < found ? float((double(logits[tokens[i]]) - double(top)) * inverse - log_sum) : -INFINITY;
}

}  // namespace gigpo
