// Device memory is host memory, with separate allocations. Copies check the kind of memory. Pageable memory has been
// read or written when the call returns; pinned memory is accessed when the stream reaches the copy.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "cuda_runtime_api.h"
#include "streams.h"

using namespace gigpo::cuda::emulator;

namespace {

size_t number_from_environment(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text ? size_t(std::strtoull(text, nullptr, 0)) : otherwise;
}

struct Allocation {
  size_t bytes;
  bool on_device;
  int device;
};
auto& allocations = *new std::map<uintptr_t, Allocation>;  // never destroyed, because memory may be freed at program exit
size_t device_bytes[most_devices];

// Allocation that contains all of these bytes, or null.
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
  if (device && is_lost(current_device())) return cudaErrorIllegalAddress;
  if (device && !take_memory(bytes, current_device())) return cudaErrorMemoryAllocation;
  if (posix_memalign(pointer, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*pointer, 0xFF, bytes);
  allocations[reinterpret_cast<uintptr_t>(*pointer)] = {bytes, device, current_device()};
  return cudaSuccess;
}

cudaError_t release(void* pointer, bool device) {
  if (!pointer) return cudaSuccess;
  const auto found = allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == allocations.end() || found->second.on_device != device) return cudaErrorInvalidValue;
  if (device) give_back_memory(found->second.bytes, found->second.device);
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
  if (is_lost(current_device())) return cudaErrorIllegalAddress;
  if (!is_current(stream)) return cudaErrorInvalidResourceHandle;
  if (waits && breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  if (to.pitch < to.width || from.pitch < from.width) return cudaErrorInvalidValue;
  if (to.span() == 0) return cudaSuccess;
  const bool to_device = on_device(to.pointer, to.span()), from_device = on_device(from.pointer, from.span());
  if (kind != cudaMemcpyDefault && (to_device != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
                                    from_device != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)))
    return cudaErrorInvalidValue;
  if (stream && !capturing(stream) && pageable(from.pointer, from.span())) {  // is staged: the caller may overwrite it
    auto staged = std::make_shared<std::vector<char>>(from.span());
    std::memcpy(staged->data(), from.pointer, from.span());
    queue(stream, [=] { copy_rows(to, {staged->data(), from.pitch, from.width, from.height}); });
  } else {
    queue(stream, [=] { copy_rows(to, from); });
  }
  if (stream && !capturing(stream) && pageable(to.pointer, to.span())) run_stream(stream);
  return cudaSuccess;
}

cudaError_t set(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (!is_current(stream)) return cudaErrorInvalidResourceHandle;
  if (default_stream_in_capture(stream)) return cudaErrorStreamCaptureUnsupported;
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) return cudaErrorInvalidValue;
  queue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

}  // namespace

bool gigpo::cuda::emulator::take_memory(size_t bytes, int device) {
  if (bytes > memory_limit || device_bytes[device] > memory_limit - bytes) return false;
  device_bytes[device] += bytes;
  return true;
}
void gigpo::cuda::emulator::give_back_memory(size_t bytes, int device) { device_bytes[device] -= bytes; }

size_t gigpo::cuda::emulator::memory_limit = number_from_environment("GIGPO_EMULATOR_MEMORY", size_t{4} << 30);

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  const Lock lock(one_call);
  *total = memory_limit;
  const size_t used = device_bytes[current_device()];
  *free_bytes = *total > used ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  return result(allocate(pointer, bytes, true));
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  const Lock lock(one_call);
  if (capturing(stream)) return result(cudaErrorNotSupported);  // memory nodes of graphs
  return result(allocate(pointer, bytes, true));
}
cudaError_t cudaFree(void* pointer) {
  const Lock lock(one_call);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  run_streams(true);
  return result(release(pointer, true));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const Lock lock(one_call);
  if (capturing(stream)) return result(cudaErrorNotSupported);
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
  run_streams(true);
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
// Each pointer must be memory of the device that is named with it.
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes, cudaStream_t stream) {
  const Lock lock(one_call);
  const auto belongs = [&](const void* pointer, int device) {
    const Allocation* allocation = allocation_of(pointer, bytes);
    return bytes == 0 || (allocation && allocation->on_device && allocation->device == device);
  };
  if (is_lost(to_device) || is_lost(from_device)) return result(cudaErrorIllegalAddress);
  if (!belongs(to, to_device) || !belongs(from, from_device)) return result(cudaErrorInvalidValue);
  return result(copy({to, bytes, bytes, 1}, {from, bytes, bytes, 1}, cudaMemcpyDeviceToDevice, stream, false));
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
