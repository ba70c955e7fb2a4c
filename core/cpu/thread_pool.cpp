#include "core/cpu/thread_pool.h"

#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gigpo::cpu {

static void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Number of spins before an idle worker sleeps: some tens of microseconds, longer than the pause between two operations of a model.
constexpr int spins = 2000;

ThreadPool::ThreadPool(int threads) : shares_(size_t(threads < 1 ? 1 : threads)) {
  if (threads < 1 || threads > int(open))
    throw Error("BAD_ARGUMENT", "The number of threads must be between 1 and " + std::to_string(open) + ".");
  try {
    workers_.reserve(size_t(threads));
    for (int i = 1; i < threads; i++) workers_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error&) {
    stop();
    throw Error("OUT_OF_MEMORY", "The system starts no more than " + std::to_string(workers_.size()) + " of " +
                                     std::to_string(threads) + " threads: give fewer threads, or raise its limits (ulimit -u, -v).");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_ = true;
  state_ += number;
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t count, Function function, void* context) {
  if (workers_.empty() || count < 2 || busy_.exchange(true)) {
    for (int64_t i = 0; i < count; i++) function(context, i);
    return;
  }
  const int64_t threads = size();
  for (int64_t i = 0; i < threads; i++) {
    shares_[size_t(i)].next.store(count * i / threads, std::memory_order_relaxed);
    shares_[size_t(i)].end = count * (i + 1) / threads;
  }
  function_ = function, context_ = context;
  failed_.store(false, std::memory_order_relaxed);
  state_ += number | open;  // closed before, so this sets the bit
  state_.notify_all();
  work(0);
  state_ &= ~open;
  for (int spin = 0; state_ % open != 0; spin++) spin < spins ? pause() : std::this_thread::yield();
  const std::exception_ptr error = std::exchange(error_, nullptr);
  busy_ = false;
  if (error) std::rethrow_exception(error);
}

void ThreadPool::work(int thread) {
  for (int i = 0; i < size(); i++) {
    Share& share = shares_[size_t((thread + i) % size())];
    // Checked before fetch_add: a finished share is only read, which many threads can do at once without contention.
    const auto open = [&] { return !failed_ && share.next.load(std::memory_order_relaxed) < share.end; };
    for (int64_t index; open() && (index = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
      try {
        function_(context_, index);
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }
}

void ThreadPool::worker(int thread) {
  uint32_t seen = 0;  // last loop that this worker joined
  for (int spin = 0; !stop_;) {
    uint32_t state = state_;
    if ((state & open) && state / number != seen) {
      if (!state_.compare_exchange_weak(state, state + 1)) continue;
      seen = state / number;
      work(thread);
      state_ -= 1;
      spin = 0;
    } else if (++spin < spins) {
      pause();
    } else {
      state_.wait(state);
      spin = 0;
    }
  }
}

}  // namespace gigpo::cpu
