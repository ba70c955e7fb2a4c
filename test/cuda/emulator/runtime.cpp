// The CUDA runtime over host memory. A stream is a queue, and what is queued runs when somebody waits for it: as late as a
// card might run it, so that whoever forgets to wait sees old bytes. The default stream waits for all others and runs at
// once. While a stream is captured, work goes into a graph.
#include "cuda_runtime_api.h"

#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace {

using Work = std::function<void()>;

std::recursive_mutex one_call;
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

size_t number_from_environment(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text ? size_t(std::strtoull(text, nullptr, 0)) : otherwise;
}

struct Allocation {
  size_t bytes;
  bool on_device;
};
auto& allocations = *new std::map<uintptr_t, Allocation>;  // outlives what frees its memory when the program ends
size_t device_bytes;

}  // namespace

struct CUgraph_st {
  std::vector<Work> nodes;
  bool relaxed = false, valid = true;
};

struct CUgraphExec_st {
  std::vector<Work> nodes;
};

struct CUstream_st {
  bool blocking;  // does what the default stream waits for
  std::deque<Work> queue;
  uint64_t queued = 0, done = 0;
  cudaGraph_t capture = nullptr;
};

struct CUevent_st {
  cudaStream_t stream = nullptr;
  uint64_t position = 0;  // of the last record, in the stream's work
  cudaGraph_t capture = nullptr;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

namespace {

auto& streams = *new std::set<cudaStream_t>;

void run_until(cudaStream_t stream, uint64_t position) {
  while (stream->done < position) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->done++;
    work();
  }
}

void run_all(bool non_blocking_too) {
  for (cudaStream_t stream : streams)
    if (stream->blocking || non_blocking_too) run_until(stream, stream->queued);
}

void queue(cudaStream_t stream, Work work) {
  if (!stream) {
    run_all(false);
    work();
  } else if (stream->capture) {
    stream->capture->nodes.push_back(std::move(work));
  } else {
    stream->queue.push_back(std::move(work));
    stream->queued++;
  }
}

// Work of this event belongs to a capture that is still under way.
bool captured(cudaEvent_t event) {
  for (cudaStream_t stream : streams)
    if (event->capture && stream->capture == event->capture) return true;
  return false;
}

// Calls that a capture does not allow make it worthless. True where one is under way.
bool breaks_capture() {
  bool any = false;
  for (cudaStream_t stream : streams)
    if (stream->capture && !stream->capture->relaxed) {
      stream->capture->valid = false;
      any = true;
    }
  return any;
}

// The default stream would wait for streams that are being captured.
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

// The allocation that holds all of these bytes, or null.
const Allocation* allocation_of(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return nullptr;
  --next;
  return address - next->first + bytes <= next->second.bytes ? &next->second : nullptr;
}

bool on_device(const void* pointer, size_t bytes) {
  const Allocation* allocation = allocation_of(pointer, bytes);
  return allocation && allocation->on_device;
}

bool pageable(const void* pointer, size_t bytes) { return !allocation_of(pointer, bytes); }

cudaError_t allocate(void** pointer, size_t bytes, bool device) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (device && (bytes > gigpo::cuda::emulator::memory_limit ||
                 device_bytes > gigpo::cuda::emulator::memory_limit - bytes))
    return cudaErrorMemoryAllocation;
  if (posix_memalign(pointer, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*pointer, 0xFF, bytes);
  allocations[reinterpret_cast<uintptr_t>(*pointer)] = {bytes, device};
  if (device) device_bytes += bytes;
  return cudaSuccess;
}

cudaError_t release(void* pointer, bool device) {
  if (!pointer) return cudaSuccess;
  const auto found = allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == allocations.end() || found->second.on_device != device) return cudaErrorInvalidValue;
  if (device) device_bytes -= found->second.bytes;
  allocations.erase(found);
  std::free(pointer);
  return cudaSuccess;
}

struct Rows {
  const void* pointer;
  size_t pitch, width, height;
  size_t span() const { return height == 0 || width == 0 ? 0 : (height - 1) * pitch + width; }
};

void copy_rows(const Rows& to, const Rows& from) {
  for (size_t row = 0; row < to.height; row++)
    std::memcpy(static_cast<char*>(const_cast<void*>(to.pointer)) + row * to.pitch,
                static_cast<const char*>(from.pointer) + row * from.pitch, to.width);
}

cudaError_t copy(const Rows& to, const Rows& from, cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
  if (waits && breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  if (to.pitch < to.width || from.pitch < from.width) return cudaErrorInvalidValue;
  if (to.span() == 0) return cudaSuccess;
  const bool to_device = on_device(to.pointer, to.span()), from_device = on_device(from.pointer, from.span());
  if (kind != cudaMemcpyDefault && (to_device != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
                                    from_device != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)))
    return cudaErrorInvalidValue;
  if (stream && !stream->capture && pageable(from.pointer, from.span())) {  // is staged: the caller may write there again
    auto staged = std::make_shared<std::vector<char>>(from.span());
    std::memcpy(staged->data(), from.pointer, from.span());
    queue(stream, [=] { copy_rows(to, {staged->data(), from.pitch, from.width, from.height}); });
  } else {
    queue(stream, [=] { copy_rows(to, from); });
  }
  if (stream && !stream->capture && pageable(to.pointer, to.span())) run_until(stream, stream->queued);
  return cudaSuccess;
}

cudaError_t set(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) return cudaErrorInvalidValue;
  queue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

}  // namespace

namespace gigpo::cuda::emulator {

size_t memory_limit = number_from_environment("GIGPO_EMULATOR_MEMORY", size_t{4} << 30);

cudaError_t enqueue(cudaStream_t stream, Work work) {
  const Lock lock(one_call);
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  queue(stream, std::move(work));
  return cudaSuccess;
}

}  // namespace gigpo::cuda::emulator

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
#define GIGPO_NAME(name) \
  case name: return #name;
    GIGPO_NAME(cudaSuccess)
    GIGPO_NAME(cudaErrorInvalidValue)
    GIGPO_NAME(cudaErrorMemoryAllocation)
    GIGPO_NAME(cudaErrorInitializationError)
    GIGPO_NAME(cudaErrorInvalidConfiguration)
    GIGPO_NAME(cudaErrorInsufficientDriver)
    GIGPO_NAME(cudaErrorDevicesUnavailable)
    GIGPO_NAME(cudaErrorNoDevice)
    GIGPO_NAME(cudaErrorInvalidDevice)
    GIGPO_NAME(cudaErrorNoKernelImageForDevice)
    GIGPO_NAME(cudaErrorInvalidResourceHandle)
    GIGPO_NAME(cudaErrorIllegalState)
    GIGPO_NAME(cudaErrorNotReady)
    GIGPO_NAME(cudaErrorIllegalAddress)
    GIGPO_NAME(cudaErrorLaunchFailure)
    GIGPO_NAME(cudaErrorNotSupported)
    GIGPO_NAME(cudaErrorStreamCaptureUnsupported)
    GIGPO_NAME(cudaErrorStreamCaptureInvalidated)
    GIGPO_NAME(cudaErrorUnknown)
#undef GIGPO_NAME
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t status) { return cudaGetErrorName(status); }

cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  *properties = {"emulated", gigpo::cuda::emulator::memory_limit, 48 << 10, 227 << 10, 228 << 10, 9, 0, 132, 1024, 2048, 65536,
                 32, 50 << 20};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t status = cudaGetDeviceProperties(&properties, device)) return status;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = properties.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = int(properties.sharedMemPerMultiprocessor); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(properties.sharedMemPerBlockOptin); break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
  }
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  return result(attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > 227 << 10 ? cudaErrorInvalidValue
                                                                                              : cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  run_all(true);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  const Lock lock(one_call);
  *total = gigpo::cuda::emulator::memory_limit;
  *free_bytes = *total > device_bytes ? *total - device_bytes : 0;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  return result(allocate(pointer, bytes, true));
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  const Lock lock(one_call);
  if (stream && stream->capture) return result(cudaErrorNotSupported);  // memory nodes of graphs
  return result(allocate(pointer, bytes, true));
}
cudaError_t cudaFree(void* pointer) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  run_all(true);
  return result(release(pointer, true));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const Lock lock(one_call);
  if (stream && stream->capture) return result(cudaErrorNotSupported);
  if (pointer && !on_device(pointer, 1)) return result(cudaErrorInvalidValue);
  queue(stream, [pointer] { release(pointer, true); });
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  return result(allocate(pointer, bytes, false));
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault); }
cudaError_t cudaFreeHost(void* pointer) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  run_all(true);
  return result(release(pointer, false));
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  const Lock lock(one_call);
  return result(copy({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, nullptr, true));
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(one_call);
  return result(copy({to, to_pitch, width, height}, {from, from_pitch, width, height}, kind, stream, false));
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, bytes, from, bytes, bytes, 1, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  return result(set(to, value, bytes, nullptr));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock(one_call);
  return result(set(to, value, bytes, stream));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock(one_call);
  *stream = new CUstream_st{flags != cudaStreamNonBlocking, {}};
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(one_call);
  if (streams.count(stream) == 0) return result(cudaErrorInvalidResourceHandle);
  run_until(stream, stream->queued);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(one_call);
  if (!stream) return breaks_capture() ? result(cudaErrorStreamCaptureUnsupported) : (run_all(false), cudaSuccess);
  if (stream->capture) {
    stream->capture->valid = false;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  run_until(stream, stream->queued);
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
  if (event->capture) return cudaSuccess;
  auto time = event->time = std::make_shared<std::chrono::steady_clock::time_point>();
  queue(stream, [time] { *time = std::chrono::steady_clock::now(); });
  event->position = stream ? stream->queued : 0;
  return cudaSuccess;
}

// An event that a capture has recorded takes the stream that waits for it into the capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(one_call);
  if (event->capture && !captured(event)) return result(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (!stream || (stream->capture && stream->capture != event->capture)) return result(cudaErrorStreamCaptureUnsupported);
    stream->capture = event->capture;
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
  stream->capture = new CUgraph_st;
  stream->capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(one_call);
  *graph = nullptr;
  if (!stream || !stream->capture) return result(cudaErrorIllegalState);
  const cudaGraph_t captured = stream->capture;
  for (cudaStream_t other : streams)
    if (other->capture == captured) other->capture = nullptr;
  if (!captured->valid) {
    delete captured;
    return result(cudaErrorStreamCaptureInvalidated);
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
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock(one_call);
  if (default_stream_in_capture(stream)) return result(cudaErrorStreamCaptureUnsupported);
  for (const Work& work : executable->nodes) queue(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock(one_call);
  run_all(true);
  return delete executable, cudaSuccess;
}
