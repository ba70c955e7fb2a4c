// The likeliest tokens of a row of logits, with their log-probabilities.
#pragma once
#include <cstdint>

namespace gigpo {

// What fills up where fewer may be: logits of `masked_logit`, of minus infinity and of NaN are none's.
constexpr int32_t no_token = -1;

// logits [vocab] -> tokens, log_probs [count]: the likeliest first, of equals that of the lower number. At temperature 0 as at 1.
void top_tokens(int64_t vocab, const float* logits, float temperature, int64_t count, int32_t* tokens, float* log_probs);

}  // namespace gigpo
