// Common interface of the parts of the runtime.
#pragma once
#include <chrono>
#include <concepts>
#include <functional>
#include <mutex>
#include <vector>

#include "cuda_runtime_api.h"

namespace gigpo::cuda::emulator {

// Queued work. `begin` exists for a kernel that may start before the previous kernel in the stream has ended: it runs
// the part before the wait, and returns the rest.
struct Work {
  template <std::invocable Run>
  Work(Run run, bool kernel = false) : run(std::move(run)), kernel(kernel) {}
  std::function<void()> run;
  bool kernel;
  std::function<std::function<void()>()> begin;
};

// Lock of every call of the runtime.
extern std::recursive_mutex one_call;
using Lock = std::lock_guard<std::recursive_mutex>;

// Stores an error for cudaGetLastError.
cudaError_t result(cudaError_t status);

// Queues work on a stream, or in the graph that the stream is captured into; on the default stream (null) it runs at
// once.
void queue(cudaStream_t stream, Work work);

// Runs queued work: of one stream, or of all streams that the default stream waits for, or of all.
void run_stream(cudaStream_t stream);
void run_streams(bool non_blocking_too);

// Number of times that the host waited for the device.
extern size_t waits;

bool capturing(cudaStream_t stream);
// Whether a stream belongs to the calling thread's device, as every call on it requires; the default stream always does.
bool is_current(cudaStream_t stream);

// Whether a capture is in progress that the calling thread must not disturb; if so, the call is not allowed, and the capture becomes
// invalid.
bool breaks_capture();

// Whether the default stream would wait for streams that are being captured.
bool default_stream_in_capture(cudaStream_t stream);

constexpr int most_devices = 8;
// Device of the calling thread.
int current_device();
// Whether a test has this device fail.
bool is_lost(int device);

// Reserves memory of a device without an address; false if there is not enough left.
bool take_memory(size_t bytes, int device);
void give_back_memory(size_t bytes, int device);
// Number of graph launches.
extern int64_t graph_launches;
// Whether streams with priority, and forks of a graph, run as early as possible; otherwise as late as possible.
extern bool priority_is_early;

// Lead of the device's clock over the host's, so that work can take a nominal time without a wait.
extern std::chrono::nanoseconds spent;

// Queues work from another library: queue() under the lock.
cudaError_t enqueue(cudaStream_t stream, Work work);

}  // namespace gigpo::cuda::emulator
