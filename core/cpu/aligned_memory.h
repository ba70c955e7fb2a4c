// Memory of the CPU device: on the boundary of a vector, and in huge pages where it is large, which are a hint to the system and save
// page faults and address translations.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace gigpo::cpu {

// Null where there is no room. To be released with std::free.
inline void* allocate_aligned(size_t bytes) {
  constexpr size_t alignment = 64, huge_page = size_t{1} << 21;
  const bool large = bytes >= 2 * huge_page;
  const size_t unit = large ? huge_page : alignment;
  void* data = std::aligned_alloc(unit, (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit);
  if (data && large) madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

}  // namespace gigpo::cpu
