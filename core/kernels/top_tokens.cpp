#include "core/kernels/top_tokens.h"

#include <algorithm>
#include <cmath>

#include "core/device.h"
#include "core/kernels/row_sweeps.h"

namespace gigpo {

void top_tokens(int64_t vocab, const float* logits, float temperature, int64_t count, int32_t* tokens, float* log_probs) {
  if (count == 0) return;
  const auto before = [&](int32_t a, int32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); };
  // A heap whose root is the worst of the tokens found so far.
  int64_t found = 0;
  for (int32_t token = 0; token < vocab; token++) {
    if (!is_possible(logits[token]) || (found == count && !(logits[token] > logits[tokens[0]]))) continue;
    if (found == count) std::pop_heap(tokens, tokens + found--, before);
    tokens[found++] = token;
    std::push_heap(tokens, tokens + found, before);
  }
  std::sort_heap(tokens, tokens + found, before);
  std::fill(tokens + found, tokens + count, no_token);
  const cpu::RowSweeps& sweeps = cpu::row_sweeps(cpu::isa());
  const double inverse = temperature == 0 ? 1 : 1 / double(temperature);
  const float top = sweeps.max(vocab, logits);
  const double log_sum = std::log(sweeps.sums(vocab, logits, top, float(inverse), nullptr).exponentials);
  for (int64_t i = 0; i < count; i++)
    log_probs[i] = i < found ? float((double(logits[tokens[i]]) - double(top)) * inverse - log_sum) : -INFINITY;
}

}  // namespace gigpo
