// The blocks that run, one or those of a cluster: their threads, and what these wait for. grids.cpp starts one after the other, emulator.cpp
// runs each.
#pragma once
#include <functional>

#include "emulator.h"
#include "fiber.h"
#include "scheduler.h"

namespace gigpo::cuda::emulator {

constexpr int most_threads = 1024, lanes = 32;

// ThreadSanitizer knows a fiber by what it has seen. Blocks know nothing of each other, so neighbours run on different
// fibers, and a thread on a different one in every block.
#ifdef __SANITIZE_THREAD__
constexpr unsigned worker_sets = 2;
#else
constexpr unsigned worker_sets = 1;
#endif

struct Worker {
  Fiber fiber;
  Copies copies;
};

// What orders the threads' accesses to memory, twice: who is late may still look at the last, while others come to the next.
struct Order {
  char marks[worker_sets][2];
  unsigned count;
};

struct Thread {
  Worker* worker;
  uint3 index;
  unsigned number;  // in the cluster
  unsigned rank;    // of its block there
  const char* waits_for;  // null: does not wait
  Place place;
  Votes votes;
  bool waited;  // for the kernel before
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
  Order orders[lanes];  // of a meeting
};

// The threads of a block, or of a cluster, and what they meet at.
struct Group {
  Thread *begin, *end;
  unsigned living, arrived, votes;
  const char* what;
  Place place;
  Order order;
};

// The grid that runs. Its blocks are clusters, most of them of one.
struct Launch {
  const std::function<void()>* thread;
  Place place;
  char* shared;  // of a cluster: one block's behind the other's
  size_t shared_bytes;
  unsigned cluster;
  bool must_wait;  // for the kernel before
  bool ahead;      // of the kernel before: a block is run up to its wait
  uint64_t random;
  unsigned worker_set;
};

extern Thread threads[most_threads];
extern Warp warps[most_threads / lanes];
extern Thread* ready[most_threads];
extern unsigned ready_count;
extern unsigned held;  // threads that wait for the kernel before
extern Group blocks[most_threads / lanes], cluster;
extern uint3 first_block;  // of the cluster
extern Launch launched;
extern Fiber host;
extern char launch_starts, launch_ends;  // what orders them

void thread_main();       // of every fiber
void go_on(Thread* thread);
void run_ready();  // until all threads have ended, or wait for the kernel before

}  // namespace gigpo::cuda::emulator
