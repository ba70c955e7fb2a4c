// What MatmulLibrary::open goes by: where to look.
#pragma once
#include <string>
#include <vector>

#include "cuda/cublaslt.h"

namespace gigpo::cuda {

// Where a cuBLASLt may lie, in the order in which they are tried: paths, then names for the linker to find.
std::vector<std::string> library_candidates();

}  // namespace gigpo::cuda
