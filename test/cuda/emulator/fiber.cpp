#include "fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#ifndef __x86_64__
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifdef __SANITIZE_THREAD__
// Volatile accesses, which CUDA guarantees to be single, count as relaxed atomics. The compiler calls these functions
// before each.
#define GIGPO_VOLATILE(bytes, type)                                                                                 \
  extern "C" void __tsan_volatile_read##bytes(type* at) { __atomic_load_n(at, __ATOMIC_RELAXED); }                 \
  extern "C" void __tsan_volatile_write##bytes(type* at) { __atomic_fetch_add(at, type(0), __ATOMIC_RELAXED); }
GIGPO_VOLATILE(1, uint8_t)
GIGPO_VOLATILE(2, uint16_t)
GIGPO_VOLATILE(4, uint32_t)
GIGPO_VOLATILE(8, uint64_t)

extern "C" const char* __tsan_default_options() { return "atexit_sleep_ms=0"; }  // no other threads to wait for
#endif

namespace gigpo::cuda::emulator {

namespace {

constexpr size_t stack_bytes = 256 << 10;  // only touched pages use memory

// Offset of a stack. Stacks that start at the same offset of a page would compete for the same few cache lines.
size_t color() {
  static size_t count = 0;
  return (count++ * 5 % 32) * 128;
}

void* new_stack() {
  const size_t guard = size_t(sysconf(_SC_PAGESIZE));
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = mmap(nullptr, stack_bytes + guard, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
    std::perror("CUDA emulator: no memory for a thread's stack");
    std::abort();
  }
  return static_cast<char*>(memory) + guard;
}

}  // namespace

#ifdef __x86_64__

// Saves the callee-saved registers, switches stacks, and returns to the caller that switched away from the other one.
extern "C" void gigpo_switch_stack(void** save, void* load);
asm(R"(
  .text
  .p2align 4
  .hidden gigpo_switch_stack
  .globl gigpo_switch_stack
  .type gigpo_switch_stack, @function
gigpo_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size gigpo_switch_stack, .-gigpo_switch_stack
)");

static void* first_frame(void* top, void (*main)()) {
  auto** at = static_cast<void**>(top);
  *--at = nullptr;  // where `main` would return to
  *--at = reinterpret_cast<void*>(main);
  for (int i = 0; i < 6; i++) *--at = nullptr;
  return at;
}

#endif

Fiber new_fiber(void (*main)()) {
  Fiber fiber;
  char* bottom = static_cast<char*>(new_stack());
  fiber.bottom = bottom;
  fiber.bytes = stack_bytes;
#ifdef __x86_64__
  fiber.saved = first_frame(bottom + stack_bytes - color(), main);
#else
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = stack_bytes - color();
  context->uc_link = nullptr;
  makecontext(context, main, 0);
  fiber.saved = context;
#endif
#ifdef __SANITIZE_THREAD__
  fiber.thread = __tsan_create_fiber(0);
#endif
  return fiber;
}

Fiber this_fiber() {
  Fiber fiber;
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  void* bottom = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &bottom, &fiber.bytes);
  pthread_attr_destroy(&attributes);
  fiber.bottom = bottom;
#endif
#ifdef __SANITIZE_THREAD__
  fiber.thread = __tsan_get_current_fiber();
#endif
#ifndef __x86_64__
  static ucontext_t context;
  fiber.saved = &context;
#endif
  return fiber;
}

UNSEEN void switch_fiber(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(to.thread, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef __x86_64__
  gigpo_switch_stack(&from.saved, to.saved);
#else
  swapcontext(static_cast<ucontext_t*>(from.saved), static_cast<ucontext_t*>(to.saved));
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

UNSEEN void entered_fiber() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

#ifdef __SANITIZE_THREAD__
UNSEEN void release_memory(void* mark) { __tsan_release(mark); }
UNSEEN void acquire_memory(void* mark) { __tsan_acquire(mark); }
#else
void release_memory(void*) {}
void acquire_memory(void*) {}
#endif

}  // namespace gigpo::cuda::emulator
