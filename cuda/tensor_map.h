// TMA descriptors of matrices in global memory (cuTensorMapEncodeTiled of the driver, found at run time, so nothing is linked against the
// driver).
#pragma once
#include <cuda.h>

#include "core/tensor.h"

namespace gigpo::cuda {

// Whether TMA can read this matrix: address and stride must be multiples of 16 bytes.
bool mappable(const Tensor& t);

// Creates a descriptor for boxes of `lines` rows and 64 columns of a bf16 matrix, for copy_tile. Returns false if the driver does not support
// such descriptors.
bool map_tiles(const Tensor& t, int lines, CUtensorMap* map);

}  // namespace gigpo::cuda
