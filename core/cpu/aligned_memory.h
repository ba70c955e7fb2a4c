// Memory of the CPU device, aligned for vector instructions. On Linux, large allocations request huge pages, a hint to the system that
// reduces page faults and TLB misses.
#pragma once
#include <cstddef>

namespace gigpo::cpu {

// Allocates `bytes`; null if there is not enough memory. Release with release_aligned.
void* allocate_aligned(size_t bytes);

// Releases memory of allocate_aligned; null is allowed.
void release_aligned(void* data);

}  // namespace gigpo::cpu
