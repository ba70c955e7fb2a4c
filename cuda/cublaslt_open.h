// What MatmulLibrary::open goes by: where to look, and whether to trust what was found.
#pragma once
#include <string>
#include <vector>

#include "cuda/cublaslt.h"

namespace gigpo::cuda {

// Where a cuBLASLt may lie, in the order in which they are tried: paths, then names for the linker to find.
std::vector<std::string> library_candidates();

// The reason not to use it, or "".
std::string self_test(MatmulLibrary& library);

}  // namespace gigpo::cuda
