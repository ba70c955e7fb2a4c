// How TMA is told of a matrix in global memory (cuTensorMapEncodeTiled of the driver, which is found at run time: nothing is
// linked against it).
#pragma once
#include <cuda.h>

#include "core/tensor.h"

namespace gigpo::cuda {

// Whether TMA can read this matrix: its address and its stride are multiples of 16 bytes.
bool mappable(const Tensor& t);

// Boxes of `lines` rows and 64 columns of a bf16 matrix, for copy_tile. False where the driver knows no such maps.
bool map_tiles(const Tensor& t, int lines, CUtensorMap* map);

}  // namespace gigpo::cuda
