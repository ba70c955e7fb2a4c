// Quantization from fp32 to the number formats of GGUF files.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/stored_floats.h"

namespace gigpo {

// Whether `quantize` supports a type.
bool can_quantize(Stored type);

// Largest magnitude that a type stores as a finite number: block formats have F16 scales.
float largest_stored(Stored type);

// Converts `count` fp32 values to a storage type. f16, bf16, q8_0, q4_0 and q5_0 are bit-identical to `quantize` of gguf-py. q4_k and q6_k
// search the scales with the smallest error per block, like the reference of llama.cpp without an importance matrix. `count` is a multiple
// of the block size; values must be finite, with magnitudes up to largest_stored.
void quantize(const float* from, Stored type, int64_t count, std::byte* to);

}  // namespace gigpo
