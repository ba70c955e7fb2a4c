// What ThreadSanitizer is told of the emulator's own memory.
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

// Between the waits of kernels: what the emulator itself reads and writes, all threads share.
class Unlooked {
 public:
#ifdef __SANITIZE_THREAD__
  Unlooked() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unlooked() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  Unlooked() {}
#endif
  Unlooked(const Unlooked&) = delete;
};

}  // namespace gigpo::cuda::emulator
