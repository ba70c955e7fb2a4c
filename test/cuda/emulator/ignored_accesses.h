// Annotations for ThreadSanitizer about the emulator's own memory.
#pragma once
#include <cstdint>

#ifdef __SANITIZE_THREAD__
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_read_range(void* at, unsigned long bytes);
void __tsan_write_range(void* at, unsigned long bytes);
void __tsan_java_alloc(uintptr_t at, uintptr_t bytes);
void __tsan_java_free(uintptr_t at, uintptr_t bytes);
}
#endif

namespace gigpo::cuda::emulator {

// Scope in which accesses are ignored: the state that the emulator uses between waits of kernels is shared by all
// threads.
class IgnoredAccesses {
 public:
#ifdef __SANITIZE_THREAD__
  IgnoredAccesses() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~IgnoredAccesses() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  IgnoredAccesses() {}
#endif
  IgnoredAccesses(const IgnoredAccesses&) = delete;
};

}  // namespace gigpo::cuda::emulator
