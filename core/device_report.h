// Which CUDA devices there are, or why there are none. Never throws: a machine without a GPU is no error.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gigpo {

enum class Unavailable { none, not_built, no_driver, old_driver, no_device };

// As src/native.ts spells it.
constexpr const char* unavailable_name(Unavailable reason) {
  switch (reason) {
    case Unavailable::not_built: return "not_built";
    case Unavailable::no_driver: return "no_driver";
    case Unavailable::old_driver: return "old_driver";
    case Unavailable::no_device: return "no_device";
    case Unavailable::none: break;
  }
  return "";
}

struct CudaDevice {
  std::string name;
  int major, minor;  // compute capability
  int64_t memory_bytes;
};

struct DeviceReport {
  Unavailable unavailable = Unavailable::none;
  std::string message;  // where unavailable: why, and what to do
  std::vector<CudaDevice> devices;
};

// Asked of the driver at every call. Implemented by cuda/device_report.cu, or by core/no_cuda.cpp in a build without nvcc.
DeviceReport device_report();

}  // namespace gigpo
