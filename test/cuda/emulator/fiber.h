// Fibers: stacks that the program switches between. They are never freed and are reused by later blocks.
#pragma once
#include <cstddef>

// Excluded from ThreadSanitizer: state of the emulator that all threads share.
#define UNSEEN __attribute__((no_sanitize("thread")))

namespace gigpo::cuda::emulator {

struct Fiber {
  void* saved = nullptr;  // where it continues: its stack pointer, or its ucontext
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* thread = nullptr;      // ThreadSanitizer's
};

// Creates a fiber that calls `main`, which never returns, at the first switch to it.
Fiber new_fiber(void (*main)());

// The calling thread's own stack as a fiber, to switch back to.
Fiber this_fiber();

void switch_fiber(Fiber& from, Fiber& to);

// Must be called first by a fiber's `main`.
void entered_fiber();

// For ThreadSanitizer: accesses of a fiber before it releases a mark happen before accesses of another one after it
// acquires the mark.
void release_memory(void* mark);
void acquire_memory(void* mark);

}  // namespace gigpo::cuda::emulator
