// Errors of the CUDA runtime, and its devices: one, or as many of the same kind as GIGPO_EMULATED_GPUS says. The one whose number is in
// GIGPO_EMULATED_LOST is lost: its calls fail, as after an illegal access of a kernel.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "cuda_runtime_api.h"
#include "streams.h"

using gigpo::cuda::emulator::result;

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current = 0;

int number_in(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}
int count_devices() { return std::min(number_in("GIGPO_EMULATED_GPUS", 1), gigpo::cuda::emulator::most_devices); }

}  // namespace

cudaError_t gigpo::cuda::emulator::result(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

int gigpo::cuda::emulator::current_device() { return current; }
bool gigpo::cuda::emulator::is_lost(int device) { return number_in("GIGPO_EMULATED_LOST", -1) == device; }

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
    GIGPO_NAME(cudaErrorInvalidDeviceFunction)
    GIGPO_NAME(cudaErrorNoDevice)
    GIGPO_NAME(cudaErrorInvalidDevice)
    GIGPO_NAME(cudaErrorNoKernelImageForDevice)
    GIGPO_NAME(cudaErrorInvalidResourceHandle)
    GIGPO_NAME(cudaErrorIllegalState)
    GIGPO_NAME(cudaErrorNotReady)
    GIGPO_NAME(cudaErrorIllegalAddress)
    GIGPO_NAME(cudaErrorLaunchOutOfResources)
    GIGPO_NAME(cudaErrorPeerAccessAlreadyEnabled)
    GIGPO_NAME(cudaErrorLaunchFailure)
    GIGPO_NAME(cudaErrorNotSupported)
    GIGPO_NAME(cudaErrorStreamCaptureUnsupported)
    GIGPO_NAME(cudaErrorStreamCaptureInvalidated)
    GIGPO_NAME(cudaErrorStreamCaptureUnjoined)
    GIGPO_NAME(cudaErrorUnknown)
#undef GIGPO_NAME
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t status) { return cudaGetErrorName(status); }

cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = count_devices(), cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= count_devices()) return result(cudaErrorInvalidDevice);
  return current = device, cudaSuccess;
}

// Even and odd devices have no direct way to each other, so that both ways of copies are tested.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return *can = device != peer && device % 2 == peer % 2, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const gigpo::cuda::emulator::Lock lock(gigpo::cuda::emulator::one_call);
  static auto& enabled = *new std::set<std::pair<int, int>>;
  int can = 0;
  cudaDeviceCanAccessPeer(&can, current, peer);
  if (!can || peer >= count_devices()) return result(cudaErrorInvalidDevice);
  return result(enabled.emplace(current, peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= count_devices()) return result(cudaErrorInvalidDevice);
  *properties = {.name = "emulated",
                 .totalGlobalMem = gigpo::cuda::emulator::memory_limit,
                 .sharedMemPerBlock = 48 << 10,
                 .sharedMemPerBlockOptin = 227 << 10,
                 .sharedMemPerMultiprocessor = 228 << 10,
                 .major = 9,
                 .minor = 0,
                 .multiProcessorCount = 132,
                 .maxThreadsPerBlock = 1024,
                 .maxThreadsPerMultiProcessor = 2048,
                 .regsPerBlock = 65536,
                 .warpSize = 32,
                 .l2CacheSize = 50 << 20};
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
    case cudaDevAttrClockRate: *value = 1980000; break;  // kHz, of an H100, like the next two
    case cudaDevAttrMemoryClockRate: *value = 2619000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 5120; break;
  }
  return cudaSuccess;
}
