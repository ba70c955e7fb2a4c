// Fibers: stacks that the program hops between. Each stays alive for good and is used again by block after block.
#pragma once
#include <cstddef>

// Not looked at by ThreadSanitizer: what the emulator keeps for itself, all threads share.
#define UNSEEN __attribute__((no_sanitize("thread")))

namespace gigpo::cuda::emulator {

struct Fiber {
  void* saved = nullptr;  // where it goes on: its stack pointer, or its ucontext
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* thread = nullptr;      // ThreadSanitizer's
};

// A fiber that calls `main`, which never returns, when it is first switched to.
Fiber new_fiber(void (*main)());

// The calling thread's own stack as a fiber, to come back to.
Fiber this_fiber();

void switch_fiber(Fiber& from, Fiber& to);

// The first thing that a fiber's `main` calls.
void entered_fiber();

// For ThreadSanitizer: what a fiber did before it released comes before what another does after it acquired.
void release_memory(void* mark);
void acquire_memory(void* mark);

}  // namespace gigpo::cuda::emulator
