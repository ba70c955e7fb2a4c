// Thread pool of fixed size for data-parallel loops.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace gigpo::cpu {

// Thread pool for loops of microseconds. Idle workers spin for a while before they sleep, so that a loop starts quickly. A loop never waits
// for a worker that has not joined. A loop allocates no memory.
class ThreadPool {
 public:
  // Starts a pool of `threads` >= 1 threads, including the calling thread. Throws Error OUT_OF_MEMORY if the system cannot start them.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return int(shares_.size()); }

  // Runs body(i) for every i in [0, count) and returns when all are done. Each thread starts with an equal share of [0, count), the same
  // share for each loop of this count, to reuse data in its CPU cache. Then it takes work from the shares of other threads. If the pool is
  // busy (a call from within a body, or from another thread), the loop runs on the calling thread. The first exception of a body ends the
  // loop and is rethrown.
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

  // Low bits: number of workers inside the loop; bit `open`: whether workers may join; higher bits: number of the loop.
  static constexpr uint32_t open = 1 << 10, number = 1 << 11;
  std::atomic<uint32_t> state_ = 0;
  std::atomic<bool> busy_ = false, stop_ = false;

  // Data of the current loop. Workers read it only while they are counted in state_.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  std::vector<Share> shares_;  // one per thread, the caller's first
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;

  std::vector<std::thread> workers_;
};

}  // namespace gigpo::cpu
