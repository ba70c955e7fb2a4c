// What the parts of the runtime share.
#pragma once
#include <chrono>
#include <concepts>
#include <functional>
#include <mutex>
#include <vector>

#include "cuda_runtime_api.h"

namespace gigpo::cuda::emulator {

// `begin` is of a kernel that may start before the kernel ahead of it in the stream has ended: it runs what comes before the
// wait for that one, and returns what is left.
struct Work {
  template <std::invocable Run>
  Work(Run run, bool kernel = false) : run(std::move(run)), kernel(kernel) {}
  std::function<void()> run;
  bool kernel;
  std::function<std::function<void()>()> begin;
};

// Held by every call of the runtime.
extern std::recursive_mutex one_call;
using Lock = std::lock_guard<std::recursive_mutex>;

// Keeps what went wrong for cudaGetLastError.
cudaError_t result(cudaError_t status);

// Work for a stream, or for the graph that the stream is captured into; on the default stream (null) it runs at once.
void queue(cudaStream_t stream, Work work);

// Runs what has been queued: on a stream, on all that the default stream waits for, on all.
void run_stream(cudaStream_t stream);
void run_streams(bool non_blocking_too);

// How often the host has waited for the device.
extern size_t waits;

bool capturing(cudaStream_t stream);

// Calls that a capture does not allow make it worthless. True where one is under way.
bool breaks_capture();

// The default stream would wait for streams that are being captured.
bool default_stream_in_capture(cudaStream_t stream);

// Of the device's memory, for what has no address; false where there is not so much left.
bool take_memory(size_t bytes);
void give_back_memory(size_t bytes);
// How many graphs have been launched.
extern int64_t graph_launches;
// Whether streams with priority, and what a graph forks, run as early as they may: else as late.
extern bool priority_is_early;

// What the device's clock is ahead of the host's: work may be said to take long without anybody waiting for it.
extern std::chrono::nanoseconds spent;

// Work from outside: queue() under the lock.
cudaError_t enqueue(cudaStream_t stream, Work work);

}  // namespace gigpo::cuda::emulator
