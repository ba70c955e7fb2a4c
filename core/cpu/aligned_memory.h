// Memory of the CPU device: aligned for vectors and, on Linux, in huge pages where it is large. Huge pages are a hint to the system
// that saves page faults and address translations.
#pragma once
#include <cstddef>

namespace gigpo::cpu {

// Null where there is no room. To be released with release_aligned.
void* allocate_aligned(size_t bytes);

// Null is allowed.
void release_aligned(void* data);

}  // namespace gigpo::cpu
