// Random initialization of a model that is trained from scratch.
#pragma once
#include <atomic>

#include "core/model.h"
#include "core/random.h"

namespace gigpo {

// Initializes matrices ~ N(0, deviation²), norm weights to 1 - norm_offset and biases to 0. As in GPT-2, projections into the residual stream are
// scaled by 1 / √(2 · layers), so that the variance does not grow with depth. `weights` is host memory, [layout.size]. Throws Error
// ABORTED once `cancelled` is set.
void initialize(const ModelConfig& config, const ModelLayout& layout, double deviation, Key key, const std::atomic<bool>& cancelled,
                float* weights);

}  // namespace gigpo
