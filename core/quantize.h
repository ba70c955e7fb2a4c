// fp32 to the number formats of GGUF files.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/stored_floats.h"

namespace gigpo {

// Whether `quantize` writes a type.
bool can_quantize(Stored type);

// f16, bf16, q8_0, q4_0 and q5_0 have the bits of gguf-py's `quantize`. q4_k and q6_k search the scales that lose least of each block, as
// llama.cpp's reference does without an importance matrix. `count` is a whole number of blocks; the values are finite.
void quantize(const float* from, Stored type, int64_t count, std::byte* to);

}  // namespace gigpo
