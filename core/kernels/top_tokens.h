// Most likely tokens of a row of logits, with their log-probabilities.
#pragma once
#include <cstdint>

namespace gigpo {

// Fill value if there are fewer possible tokens: tokens with a logit of `masked_logit`, minus infinity or NaN are not possible.
constexpr int32_t no_token = -1;

// Writes the `count` most likely tokens of logits [vocab] to tokens, log_probs [count], most likely first; ties by lower token id. A
// temperature of 0 is treated as 1.
void top_tokens(int64_t vocab, const float* logits, float temperature, int64_t count, int32_t* tokens, float* log_probs);

}  // namespace gigpo
