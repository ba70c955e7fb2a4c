#include "shared_memory.h"

#include <cstdint>
#include <cstring>

#include "fiber.h"
#include "ignored_accesses.h"
#ifndef __SANITIZE_ADDRESS__
#include <link.h>
#endif

namespace gigpo::cuda::emulator {

namespace {

struct Memory {
  char* start = nullptr;
  size_t bytes = 0;
};
Memory static_shared;

#ifndef __SANITIZE_ADDRESS__

thread_local char mark;

// Finds the calling thread's thread_local variables of the program or library that contains the kernels.
UNSEEN int find_thread_locals(dl_phdr_info* object, size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type != PT_TLS || !object->dlpi_tls_data) continue;
    char* start = static_cast<char*>(object->dlpi_tls_data);
    if (uintptr_t(&mark) - uintptr_t(start) >= header.p_memsz) continue;
    *static_cast<Memory*>(found) = {start, header.p_memsz};
    return 1;
  }
  return 0;
}

#endif

UNSEEN void fill(char* start, size_t bytes) {
  if (bytes == 0) return;
#ifdef __SANITIZE_THREAD__
  const uintptr_t from = uintptr_t(start) & ~uintptr_t{7}, to = (uintptr_t(start) + bytes + 7) & ~uintptr_t{7};
  const IgnoredAccesses ignored;
  std::memset(start, 0xFF, bytes);
  __tsan_java_free(from, to - from);
  __tsan_java_alloc(from, to - from);
#else
  std::memset(start, 0xFF, bytes);
#endif
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__

KeptStaticMemory::KeptStaticMemory() {}
KeptStaticMemory::~KeptStaticMemory() {}
bool in_static_shared(const void*) { return true; }  // cannot be determined here

#else

KeptStaticMemory::KeptStaticMemory() {
  dl_iterate_phdr(find_thread_locals, &static_shared);
  values.assign(static_shared.start, static_shared.start + static_shared.bytes);
}

KeptStaticMemory::~KeptStaticMemory() { std::memcpy(static_shared.start, values.data(), values.size()); }

UNSEEN bool in_static_shared(const void* pointer) {
  return uintptr_t(pointer) - uintptr_t(static_shared.start) < static_shared.bytes;
}

#endif

UNSEEN void fill_shared(char* dynamic, size_t bytes) {
  fill(dynamic, bytes);
  fill(static_shared.start, static_shared.bytes);
}

}  // namespace gigpo::cuda::emulator
