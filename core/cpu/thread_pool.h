// A fixed team of threads for data-parallel loops.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace gigpo::cpu {

// Loops of microseconds must start at once, so idle workers spin for a while before they sleep, and a loop never waits
// for a worker that has not joined it yet. A loop allocates nothing.
class ThreadPool {
 public:
  // threads >= 1, the calling thread among them. Throws Error OUT_OF_MEMORY where the system does not start as many.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return int(shares_.size()); }

  // Runs body(i) for every i in [0, count) and returns when all are done. Each thread begins with an equal share of
  // [0, count), the same for each loop of that count, so that what it wrote in one it finds in its cache in the next;
  // done with it, it takes from the others' shares.
  // A pool that is busy (a call from within a body, or from another thread) runs the loop on the calling thread.
  // The first exception of a body ends the loop and is thrown here.
  template <class F>
  void parallel_for(int64_t count, F&& body) {
    using Body = std::remove_reference_t<F>;
    run(count, [](void* context, int64_t i) { (*static_cast<Body*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Function = void (*)(void* context, int64_t i);

  void run(int64_t count, Function function, void* context);
  void work(int thread);
  void worker(int thread);
  void stop();

  // Low bits: how many workers are inside the loop; `open`: whether they may join; above: the loop's number.
  static constexpr uint32_t open = 1 << 10, number = 1 << 11;
  std::atomic<uint32_t> state_ = 0;
  std::atomic<bool> busy_ = false, stop_ = false;

  // The loop. Workers read it only while they are counted in state_.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  std::vector<Share> shares_;  // by thread, the caller's first
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;

  std::vector<std::thread> workers_;
};

}  // namespace gigpo::cpu
