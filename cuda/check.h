// CUDA_CHECK(call): throws gigpo::Error with the call, the status and the source location, unless the status is
// cudaSuccess.
#pragma once
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "core/error.h"

namespace gigpo::cuda {

// GigpoError code of a CUDA status, by what the caller can do. Errors not listed here may have broken the CUDA context permanently.
inline const char* error_code(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return "OUT_OF_MEMORY";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice: return "DEVICE_UNAVAILABLE";
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated: return "INTERNAL";
    default: return "DEVICE_LOST";
  }
}

inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears a recoverable error, so that the next check does not report it again
  const char* slash = std::strrchr(file, '/');
  throw Error(error_code(status), std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ") from " +
                                      call + " at " + (slash ? slash + 1 : file) + ":" + std::to_string(line));
}

}  // namespace gigpo::cuda

#define CUDA_CHECK(call) gigpo::cuda::check((call), #call, __FILE__, __LINE__)
