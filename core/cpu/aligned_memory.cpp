#include "core/cpu/aligned_memory.h"

#include <algorithm>
#include <cstdlib>

#ifdef _WIN32
#include <malloc.h>
#elif defined(__linux__)
#include <sys/mman.h>
#endif

namespace gigpo::cpu {

static constexpr size_t alignment = 64;

#ifdef _WIN32

// C++17's aligned_alloc does not exist there: free() could not release its memory.
void* allocate_aligned(size_t bytes) { return _aligned_malloc(std::max<size_t>(bytes, 1), alignment); }
void release_aligned(void* data) { _aligned_free(data); }

#else

static void* allocate(size_t bytes, size_t unit) {
  return std::aligned_alloc(unit, (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit);
}

void* allocate_aligned(size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr size_t huge_page = size_t{1} << 21;
  if (bytes >= 2 * huge_page) {
    void* data = allocate(bytes, huge_page);
    if (data) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }
#endif
  return allocate(bytes, alignment);
}

void release_aligned(void* data) { std::free(data); }

#endif

}  // namespace gigpo::cpu
