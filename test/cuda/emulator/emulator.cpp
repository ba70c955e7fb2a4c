// Runs the blocks of a grid one after the other. Every thread that is not waiting is in `ready`; where one waits, another
// is drawn at random, so that whatever depends on the order of the threads differs sooner or later.
#include "emulator.h"

#include <cstdarg>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/check.h"
#include "fiber.h"
#include "scheduler.h"

// Not looked at by ThreadSanitizer: what the emulator keeps for itself, all threads share.
#define UNSEEN __attribute__((no_sanitize("thread")))

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace gigpo::cuda::emulator {

namespace {

constexpr int most_threads = 1024, lanes = 32;
constexpr size_t most_shared_bytes = 227 << 10;

struct Worker {
  Fiber fiber;
  Copies copies;
};

struct Thread {
  Worker* worker;
  uint3 index;
  unsigned number;
  const char* waits_for;  // null: does not wait
  Place place;
  Votes votes;
};

// Lanes that wait for each other; found by the lowest of them.
struct Meeting {
  unsigned mask, arrived = 0;
  const char* what;
  Place place;
  void* brought[lanes];
};

struct Warp {
  unsigned living;
  int waiting;  // lanes
  Meeting meetings[lanes];
};

struct Barrier {
  unsigned arrived, votes;
  const char* what;
  Place place;
};

// The grid that runs.
struct Launch {
  const std::function<void()>* thread;
  Place place;
  char* shared;
  size_t shared_bytes;
  uint64_t random;
};

Thread threads[most_threads];
Warp warps[most_threads / lanes];
Thread* ready[most_threads];
unsigned ready_count, living, block_size;
Barrier barrier;
Launch launched;
Thread* current;
Fiber host;
std::vector<std::unique_ptr<Worker>> workers;

uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("GIGPO_EMULATOR_SEED");
    return text ? std::strtoull(text, nullptr, 0) : 0;
  }();
  return value;
}

uint64_t scramble(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

UNSEEN unsigned random_below(unsigned limit) {
  launched.random = launched.random * 0xD1342543DE82EF95u + 0x9E3779B97F4A7C15u;
  return unsigned((launched.random >> 32) * limit >> 32);
}

UNSEEN Warp& own_warp() { return warps[current->number / lanes]; }

UNSEEN void print_place(const char* what, const Place& place) {
  std::fprintf(stderr, "  %s %s:%u in %s\n", what, place.file_name(), unsigned(place.line()), place.function_name());
}

UNSEEN Thread* draw() {
  const unsigned at = random_below(ready_count);
  Thread* drawn = ready[at];
  ready[at] = ready[--ready_count];
  return drawn;
}

UNSEEN void go_on(Thread* thread) {
  thread->waits_for = nullptr;
  ready[ready_count++] = thread;
}

UNSEEN void resume(Fiber& from, Thread* thread) {
  current = thread;
  threadIdx = thread->index;
  switch_fiber(from, thread->worker->fiber);
}

[[noreturn]] UNSEEN void report_deadlock() {
  std::fprintf(stderr, "CUDA emulator: the threads wait for each other; %u have not ended:\n", living);
  for (Thread* thread = threads; thread < threads + block_size; thread++) {
    if (!thread->waits_for) continue;
    const char* what = thread->waits_for;
    const Place place = thread->place;
    unsigned count = 0;
    for (Thread* other = thread; other < threads + block_size; other++)
      if (other->waits_for == what && other->place.line() == place.line()) {
        other->waits_for = nullptr;
        count++;
      }
    std::fprintf(stderr, "  %u at %s, the first is thread %u,", count, what, thread->number);
    print_place("at", place);
  }
  fault("deadlock");
}

UNSEEN void suspend(const char* what, const Place& place) {
  Thread* self = current;
  self->waits_for = what;
  self->place = place;
  if (ready_count == 0) report_deadlock();
  resume(self->worker->fiber, draw());
}

UNSEEN void open_barrier() {
  const Votes votes = {barrier.votes, barrier.arrived};
  barrier.arrived = barrier.votes = 0;
  for (Thread* thread = threads; thread < threads + block_size; thread++) {
    if (thread->waits_for == barrier.what) go_on(thread);
    thread->votes = votes;
  }
}

// CUDA lets a block go on without the threads that have ended; a warp that names them it does not.
UNSEEN void end_thread() {
  Thread* self = current;
  Warp& warp = own_warp();
  const unsigned lane = self->number % lanes;
  warp.living &= ~(1u << lane);
  living--;
  if (warp.waiting > 0)
    for (const Meeting& meeting : warp.meetings)
      if (meeting.arrived && (meeting.mask >> lane & 1)) {
        print_place("other lanes wait at", meeting.place);
        fault("a thread ends while %s with mask %#x waits for it", meeting.what, meeting.mask);
      }
  if (living > 0 && barrier.arrived == living) open_barrier();
  if (living == 0) return switch_fiber(self->worker->fiber, host);
  if (ready_count == 0) report_deadlock();
  resume(self->worker->fiber, draw());
}

void thread_main() {
  entered_fiber();
  for (;;) {
    (*launched.thread)();
    copy_async_commit();
    copy_async_arrive(0);
    own_copies().groups = 0;
    end_thread();
  }
}

UNSEEN void run_block(unsigned size) {
  std::memset(launched.shared, 0xFF, launched.shared_bytes);
  barrier.arrived = barrier.votes = 0;
  living = ready_count = block_size = size;
  for (unsigned i = 0; i < size; i++) ready[i] = threads + i;
  for (unsigned i = 0; i * lanes < size; i++) {
    const unsigned left = size - i * lanes;
    warps[i].living = left < lanes ? (1u << left) - 1 : ~0u;
  }
  resume(host, draw());
}

void prepare_threads(dim3 block) {
  unsigned number = 0;
  for (unsigned z = 0; z < block.z; z++)
    for (unsigned y = 0; y < block.y; y++)
      for (unsigned x = 0; x < block.x; x++, number++) {
        if (number == workers.size()) {
          workers.push_back(std::make_unique<Worker>());
          workers.back()->fiber = new_fiber(thread_main);
        }
        threads[number].worker = workers[number].get();
        threads[number].index = {x, y, z};
        threads[number].number = number;
        threads[number].waits_for = nullptr;
      }
}

void run_grid(const Grid& grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread) {
  static std::mutex one_grid;
  static uint64_t launches = 0;
  const std::lock_guard<std::mutex> lock(one_grid);
  void* shared = nullptr;
  if (shared_bytes > 0 && posix_memalign(&shared, 128, shared_bytes) != 0) std::abort();
  prepare_threads(block);
  launched = {&thread, grid.place, static_cast<char*>(shared), shared_bytes, 0};
  host = this_fiber();
  blockDim = block;
  gridDim = grid.size;
  uint64_t number = 0;
  launches++;
  for (unsigned z = 0; z < grid.size.z; z++)
    for (unsigned y = 0; y < grid.size.y; y++)
      for (unsigned x = 0; x < grid.size.x; x++) {
        blockIdx = {x, y, z};
        launched.random = scramble(seed() + launches * 0x9E3779B97F4A7C15u + number++);
        run_block(block.x * block.y * block.z);
      }
  std::free(shared);
}

}  // namespace

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);  // runtime.cpp

void queue_kernel(Grid grid, dim3 block, size_t shared_bytes, cudaStream_t stream, std::function<void()> thread) {
  const uint64_t size = uint64_t{block.x} * block.y * block.z;
  if (size == 0 || size > most_threads || block.z > 64 || grid.size.x == 0 || grid.size.x > 0x7FFFFFFFu ||
      grid.size.y == 0 || grid.size.y > 65535 || grid.size.z == 0 || grid.size.z > 65535)
    CUDA_CHECK(cudaErrorInvalidConfiguration);
  if (shared_bytes > most_shared_bytes) CUDA_CHECK(cudaErrorInvalidValue);
  CUDA_CHECK(enqueue(stream, [grid, block, shared_bytes, thread = std::move(thread)] { run_grid(grid, block, shared_bytes, thread); }));
}

UNSEEN void fault(const char* format, ...) {
  std::fprintf(stderr, "CUDA emulator: ");
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\n  in thread (%u, %u, %u) of block (%u, %u, %u)\n", threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x,
               blockIdx.y, blockIdx.z);
  print_place("of the kernel launched at", launched.place);
  std::abort();
}

UNSEEN int lane_index() { return int(current->number % lanes); }

UNSEEN Votes meet_block(const char* what, bool predicate, Place place) {
  if (barrier.arrived == 0) {
    barrier.what = what;
    barrier.place = place;
  } else if (barrier.what != what || barrier.place.line() != place.line()) {
    print_place("one thread is at", place);
    print_place("another waits at", barrier.place);
    fault("the block's threads are at different barriers");
  }
  barrier.arrived++;
  barrier.votes += predicate;
  if (barrier.arrived == living) open_barrier();
  else suspend(what, place);
  return current->votes;
}

UNSEEN void meet_warp(const char* what, unsigned mask, Place place, void* brought, Exchange exchange) {
  Warp& warp = own_warp();
  const unsigned lane = current->number % lanes;
  if (!(mask >> lane & 1)) fault("%s at line %u: mask %#x does not name its own lane %u", what, unsigned(place.line()), mask, lane);
  if (mask & ~warp.living)
    fault("%s at line %u: mask %#x names lanes that are not there or have ended; left are %#x", what, unsigned(place.line()),
          mask, warp.living);
  Meeting& meeting = warp.meetings[__builtin_ctz(mask)];
  if (meeting.arrived == 0) {
    meeting.mask = mask;
    meeting.what = what;
    meeting.place = place;
  } else if (meeting.what != what || meeting.mask != mask || meeting.place.line() != place.line()) {
    print_place("one lane is at", place);
    print_place("another waits at", meeting.place);
    fault("a warp's lanes have diverged: %s with mask %#x, %s with mask %#x", what, mask, meeting.what, meeting.mask);
  }
  meeting.brought[lane] = brought;
  meeting.arrived |= 1u << lane;
  if (meeting.arrived != mask) {
    warp.waiting++;
    return suspend(what, place);
  }
  if (exchange) exchange(mask, meeting.brought);
  meeting.arrived = 0;
  Thread* first = current - lane;
  for (unsigned rest = mask & ~(1u << lane); rest != 0; rest &= rest - 1) {
    go_on(first + __builtin_ctz(rest));
    warp.waiting--;
  }
}

unsigned ballot(const char* what, unsigned mask, bool predicate, Place place) {
  struct Brought {
    bool predicate;
    unsigned ballot;
  } own = {predicate, 0};
  meet_warp(what, mask, place, &own, [](unsigned mask, void* const* brought) {
    unsigned all = 0;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      all |= unsigned(static_cast<const Brought*>(brought[lane])->predicate) << lane;
    }
    for (unsigned rest = mask; rest != 0; rest &= rest - 1)
      static_cast<Brought*>(brought[__builtin_ctz(rest)])->ballot = all;
  });
  return own.ballot;
}

UNSEEN Copies& own_copies() { return current->worker->copies; }

UNSEEN void check_shared(const char* what, const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address % bytes != 0) fault("%s at %p, which is not a multiple of %zu", what, pointer, bytes);
}

void* dynamic_shared_memory() {
  if (!launched.shared) fault("dynamic shared memory, and none was asked for");
  return launched.shared;
}

}  // namespace gigpo::cuda::emulator
