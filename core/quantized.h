// Dequantization of the number formats of GGUF files (blocks of integers with scales) to fp32.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/stored_floats.h"

namespace gigpo {

// Converts `count` values to fp32. Results are bit-identical to `dequantize` of gguf-py: each product and each sum is rounded to fp32.
// `count` is a multiple of the block size; `from` need not be aligned.
void dequantize(const std::byte* from, Stored type, int64_t count, float* to);

}  // namespace gigpo
