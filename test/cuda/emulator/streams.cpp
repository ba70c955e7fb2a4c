// A stream is a queue whose work runs when the host waits for it: as late as on any GPU, so that code that forgets to
// wait reads old bytes. Streams with priority, where a test requests it, run as early as on any GPU, so that code that
// does not make them wait fails. The default stream waits for all others and runs at once. While a stream is captured,
// work is added to a graph. A kernel that need not wait for the previous one starts before that one.
#include "streams.h"

#include <chrono>
#include <deque>
#include <memory>
#include <set>

#include "graph.h"

using namespace gigpo::cuda::emulator;

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
  size_t memory = 0;  // device memory, once uploaded
  int device = current_device();
};

struct CUstream_st {
  bool blocking;  // the default stream waits for it
  bool first;     // has priority over others
  std::deque<Work> queue;
  uint64_t queued = 0, done = 0;
  cudaGraph_t capture = nullptr;
  int device = current_device();
};

struct CUevent_st {
  cudaStream_t stream = nullptr;
  uint64_t position = 0;  // of the last record, within the stream's work or its branch of the capture
  cudaGraph_t capture = nullptr;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

namespace {

constexpr size_t node_bytes = 1024;  // per recorded operation, on the device

auto& streams = *new std::set<cudaStream_t>;

void run_until(cudaStream_t stream, uint64_t position) {
  while (stream->done < position) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->done++;
    if (Work* next = stream->queue.empty() ? nullptr : &stream->queue.front(); work.kernel && next && next->begin) next->run = next->begin();
    work.run();
  }
}

// Whether the event was recorded in a capture that is still in progress.
bool captured(cudaEvent_t event) {
  for (cudaStream_t stream : streams)
    if (event->capture && stream->capture == event->capture) return true;
  return false;
}

}  // namespace

namespace gigpo::cuda::emulator {

std::recursive_mutex one_call;
size_t waits = 0;
int64_t graph_launches = 0;
bool priority_is_early = false;
std::chrono::nanoseconds spent{0};

void run_streams(bool non_blocking_too) {
  for (cudaStream_t stream : streams)
    if (stream->blocking || non_blocking_too) run_until(stream, stream->queued);
}

void queue(cudaStream_t stream, Work work) {
  if (!stream) {
    run_streams(false);
    work.run();
  } else if (stream->capture) {
    stream->capture->nodes(stream).push_back({std::move(work)});
  } else {
    stream->queue.push_back(std::move(work));
    stream->queued++;
    if (stream->first && priority_is_early) run_stream(stream);
  }
}

void run_stream(cudaStream_t stream) { run_until(stream, stream->queued); }

bool capturing(cudaStream_t stream) { return stream && stream->capture; }

bool is_current(cudaStream_t stream) { return !stream || stream->device == current_device(); }

bool breaks_capture() {
  bool any = false;
  for (cudaStream_t stream : streams)
    if (stream->capture && !stream->capture->relaxed && stream->capture->only.value_or(std::this_thread::get_id()) == std::this_thread::get_id()) {
      stream->capture->valid = false;
      any = true;
    }
  return any;
}

bool default_stream_in_capture(cudaStream_t stream) {
  if (stream) return false;
  bool any = false;
  for (cudaStream_t other : streams)
    if (other->blocking && other->capture) {
      other->capture->valid = false;
      any = true;
    }
  return any;
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  const Lock lock(one_call);
  if (is_lost(current_device())) return cudaErrorIllegalAddress;
  if (!is_current(stream)) return cudaErrorInvalidResourceHandle;
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  queue(stream, std::move(work));
  return cudaSuccess;
}

}  // namespace gigpo::cuda::emulator

cudaError_t cudaDeviceSynchronize() {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  waits++;
  run_streams(true);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, cudaSuccess; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const Lock lock(one_call);
  *stream = new CUstream_st{.blocking = flags != cudaStreamNonBlocking, .first = priority < 0, .queue = {}};
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(one_call);
  if (streams.count(stream) == 0) return result(cudaErrorInvalidResourceHandle);
  run_stream(stream);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(one_call);
  waits++;
  if (is_lost(stream ? stream->device : current_device())) return result(cudaErrorIllegalAddress);
  if (!stream) return breaks_capture() ? result(cudaErrorStreamCaptureUnsupported) : (run_streams(false), cudaSuccess);
  if (stream->capture) {
    stream->capture->valid = false;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  run_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(one_call);
  event->capture = stream ? stream->capture : nullptr;
  event->stream = stream;
  if (event->capture) return event->position = event->capture->nodes(stream).size(), cudaSuccess;
  auto time = event->time = std::make_shared<std::chrono::steady_clock::time_point>();
  queue(stream, [time] { *time = std::chrono::steady_clock::now() + spent; });
  event->position = stream ? stream->queued : 0;
  return cudaSuccess;
}

// A stream that waits for an event recorded in a capture joins this capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(one_call);
  if (event->capture && !captured(event)) return result(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (!stream || (stream->capture && stream->capture != event->capture)) return result(cudaErrorStreamCaptureUnsupported);
    stream->capture = event->capture;
    stream->capture->nodes(stream).push_back({std::nullopt, event->capture->number(event->stream), event->position});
  } else if (event->stream) {
    if (stream && stream->capture) return result(cudaErrorStreamCaptureUnsupported);
    queue(stream, [from = event->stream, position = event->position] {
      if (streams.count(from)) run_until(from, position);
    });
  }
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(one_call);
  waits++;
  if (event->capture) return result(cudaErrorStreamCaptureUnsupported);
  if (event->stream && streams.count(event->stream)) run_until(event->stream, event->position);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(one_call);
  if (!start->time || !end->time) return result(cudaErrorInvalidResourceHandle);
  if (end->stream && end->stream->done < end->position) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Lock lock(one_call);
  if (!stream) return result(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return result(cudaErrorIllegalState);
  stream->capture = new CUgraph_st(stream);
  stream->capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
  if (mode == cudaStreamCaptureModeThreadLocal) stream->capture->only = std::this_thread::get_id();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(one_call);
  *graph = nullptr;
  if (!stream || !stream->capture) return result(cudaErrorIllegalState);
  const cudaGraph_t captured = stream->capture;
  for (cudaStream_t other : streams)
    if (other->capture == captured) other->capture = nullptr;
  if (!captured->valid || !captured->joined()) {
    const cudaError_t status = captured->valid ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureInvalidated;
    delete captured;
    return result(status);
  }
  *graph = captured;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(one_call);
  *status = !stream || !stream->capture ? cudaStreamCaptureStatusNone
            : stream->capture->valid    ? cudaStreamCaptureStatusActive
                                        : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const Lock lock(one_call);
  *executable = new CUgraphExec_st{.graph = std::make_shared<const CUgraph_st>(*graph)};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  const Lock lock(one_call);
  const size_t bytes = executable->graph->size() * node_bytes;
  if (executable->memory == 0 && !take_memory(bytes, executable->device)) return result(cudaErrorMemoryAllocation);
  executable->memory = bytes;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock(one_call);
  if (!is_current(stream) || (stream && stream->device != executable->device)) return result(cudaErrorInvalidResourceHandle);
  if (default_stream_in_capture(stream)) return result(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t status = cudaGraphUpload(executable, stream)) return status;
  gigpo::cuda::emulator::graph_launches++;
  queue(stream, [graph = executable->graph] { graph->run(priority_is_early); });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock(one_call);
  run_streams(true);
  give_back_memory(executable->memory, executable->device);
  return delete executable, cudaSuccess;
}
