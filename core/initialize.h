// Fresh weights for a model trained from scratch.
#pragma once
#include <atomic>

#include "core/model.h"
#include "core/random.h"

namespace gigpo {

// Matrices ~ N(0, deviation²), norm weights 1, biases 0; as GPT-2, projections back into the residual stream are scaled by
// 1 / √(2 · layers), so that its variance does not grow with depth. `weights` is host memory, [layout.size]. Throws
// Error ABORTED once `cancelled` is set.
void initialize(const ModelConfig& config, const ModelLayout& layout, double deviation, Key key, const std::atomic<bool>& cancelled,
                float* weights);

}  // namespace gigpo
