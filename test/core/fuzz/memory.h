// Memory that an input takes, by the hooks of AddressSanitizer.
#pragma once
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define GIGPO_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GIGPO_ASAN
#endif
#endif

#ifdef GIGPO_ASAN
#include <atomic>
#include <cstddef>

// Of the headers in sanitizer/, which GCC does not install everywhere.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, size_t), void (*free_hook)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* address);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace gigpo::test {

inline std::atomic<int64_t> live = 0, peak = 0;

inline void count_allocation(const volatile void*, size_t bytes) {
  const int64_t now = live += int64_t(bytes);
  int64_t most = peak;
  while (now > most && !peak.compare_exchange_weak(most, now)) {
  }
}
inline void count_release(const volatile void* address) { live -= int64_t(__sanitizer_get_allocated_size(address)); }

inline void start_counting() {
  [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release);
  live = peak = 0;
}
// Largest number of bytes in use at once, beyond those before.
inline int64_t counted() { return peak; }
inline void on_death(void (*callback)()) { __sanitizer_set_death_callback(callback); }

}  // namespace gigpo::test

// An allocation that is larger than any input may take ends the process; so does undefined behavior, by a signal that the driver sees.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:abort_on_error=1:print_stacktrace=1"; }
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=1024:detect_leaks=1:detect_stack_use_after_return=1"; }
#else
namespace gigpo::test {

inline void start_counting() {}
inline int64_t counted() { return 0; }
inline void on_death(void (*)()) {}

}  // namespace gigpo::test
#endif
