// State of the running block or cluster: its threads, and what they wait for. grids.cpp starts one after another,
// emulator.cpp runs them.
#pragma once
#include <functional>

#include "emulator.h"
#include "fiber.h"
#include "scheduler.h"

namespace gigpo::cuda::emulator {

constexpr int most_threads = 1024, lanes = 32;

// ThreadSanitizer identifies a fiber with its history. Blocks are independent, so consecutive blocks run on different
// fibers, and each thread on a different one in every block.
#ifdef __SANITIZE_THREAD__
constexpr unsigned worker_sets = 2;
#else
constexpr unsigned worker_sets = 1;
#endif

struct Worker {
  Fiber fiber;
  Copies copies;
};

// Synchronization marks of the threads' memory accesses. Two sets: slow threads may still use the last one while others
// reach the next.
struct Order {
  char marks[worker_sets][2];
  unsigned count;
};

struct Thread {
  Worker* worker;
  uint3 index;
  unsigned number;  // within the cluster
  unsigned rank;    // of its block in the cluster
  const char* waits_for;  // null: does not wait
  Place place;
  Votes votes;
  bool waited;  // for the previous kernel
};

// Group of lanes that wait for each other; indexed by the lowest of them.
struct Meeting {
  unsigned mask, arrived = 0;
  const char* what;
  Place place;
  void* brought[lanes];
};

struct Warp {
  unsigned living;
  int waiting;  // number of lanes
  Meeting meetings[lanes];
  Order orders[lanes];  // per meeting
};

// Threads of a block or of a cluster, with the state of their barrier.
struct Group {
  Thread *begin, *end;
  unsigned living, arrived, votes;
  const char* what;
  Place place;
  Order order;
};

// The running grid. Its unit is the cluster, usually of a single block.
struct Launch {
  const std::function<void()>* thread;
  Place place;
  char* shared;  // of the cluster's blocks, consecutively
  size_t shared_bytes;
  unsigned cluster;
  bool must_wait;  // for the previous kernel
  bool ahead;      // runs a block up to its wait, before the previous kernel
  uint64_t random;
  unsigned worker_set;
};

extern Thread threads[most_threads];
extern Warp warps[most_threads / lanes];
extern Thread* ready[most_threads];
extern unsigned ready_count;
extern unsigned held;  // number of threads that wait for the previous kernel
extern Group blocks[most_threads / lanes], cluster;
extern uint3 first_block;  // first block of the cluster
extern Launch launched;
extern Fiber host;
extern char launch_starts, launch_ends;  // synchronization marks

void thread_main();       // entry point of every fiber
void make_ready(Thread* thread);
void run_ready();  // runs until all threads have ended, or wait for the previous kernel

}  // namespace gigpo::cuda::emulator
