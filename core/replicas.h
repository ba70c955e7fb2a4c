// Replicas of one policy: engines with the same weights on several devices, each with its own thread. A batch is divided between them, and
// before an optimizer step each has the sum of all gradients, so that the weights stay equal bit by bit.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/arena.h"

namespace gigpo {

// Meeting point of the threads of all replicas. Each thread makes the same calls in the same order; a call returns once all have made it.
// After `fail` every call, also one in progress, throws Error ABORTED, so that no thread waits for one that has ended.
class Replicas {
 public:
  explicit Replicas(int count) : count_(count), places_(size_t(count)) {}
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  int count() const { return count_; }
  // Smallest of the values that the replicas give.
  int64_t least(int rank, int64_t value);
  // Replaces `values` (fp32, [1][n], of the same size everywhere) by their sum over all replicas, with the same bits everywhere: each
  // replica adds one slice, in the order of the ranks, and copies the others. Working memory is allocated from `arena`, which is reset.
  void add_up(int rank, Device& device, Tensor values, Arena& arena);
  void fail();

 private:
  struct Place {
    int64_t value = 0;
    Device* device = nullptr;
    const float* floats = nullptr;
  };
  void meet();
  void meet(int rank, const Place& place);

  const int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Place> places_;  // written by its replica before a meeting, read by all after it
  int present_ = 0;
  uint64_t meetings_ = 0;
  bool failed_ = false;
};

// One of the replicas; of a policy on one device the only one.
struct Replica {
  std::shared_ptr<Replicas> all;
  int rank = 0;

  explicit operator bool() const { return all != nullptr; }
  int count() const { return all ? all->count() : 1; }
};

// Replica of each item when items of these sizes are divided between `count` replicas: the largest first, each to the replica with the least
// so far.
std::vector<int> divide(const std::vector<int64_t>& sizes, int count);

}  // namespace gigpo
