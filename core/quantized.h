// Number formats of GGUF files: blocks of integers with scales, to fp32.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/stored_floats.h"

namespace gigpo {

// Block formats of ggml. Results have the bits of gguf-py's `dequantize`: each product and each sum is rounded to fp32.
// `count` is a whole number of blocks; `from` need not be aligned.
void dequantize(const std::byte* from, Stored type, int64_t count, float* to);

}  // namespace gigpo
