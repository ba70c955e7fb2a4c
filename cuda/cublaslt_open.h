// Search paths of MatmulLibrary::open.
#pragma once
#include <string>
#include <vector>

#include "cuda/cublaslt.h"

namespace gigpo::cuda {

// Candidates for a cuBLASLt library in the order of attempts: paths, then names for the dynamic linker.
std::vector<std::string> library_candidates();

}  // namespace gigpo::cuda
