// Which NVIDIA GPUs this build can use, and if none, why. Never an error: a machine without a GPU loads a build that
// has CUDA in it, and asks here. cuda/device_report.cu answers; core/no_cuda.cpp stands in where CUDA is not built.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gigpo {

struct CudaDevice {
  int index;  // as cudaSetDevice takes it
  std::string name;
  int major, minor;      // compute capability
  int64_t memory_bytes;  // in total
};

enum class Unavailable { none, not_built, no_driver, old_driver, no_device };

inline const char* unavailable_name(Unavailable why) {
  switch (why) {
    case Unavailable::none: return "none";
    case Unavailable::not_built: return "not_built";
    case Unavailable::no_driver: return "no_driver";
    case Unavailable::old_driver: return "old_driver";
    case Unavailable::no_device: return "no_device";
  }
  return "";
}

struct DeviceReport {
  Unavailable unavailable = Unavailable::none;
  std::string message;              // a sentence that names the fix; empty when there is a device
  std::vector<CudaDevice> devices;  // only those that the kernels run on
  std::string driver;               // its version; empty where there is none
};

DeviceReport device_report();

// NVIDIA's matrix library is used where it is found and passes a test on the device: is it?
struct MatmulLibraryReport {
  bool found = false;
  std::string path, version;  // where found
  std::string message;        // what it keeps for later; else: the reason
  std::string without_wgmma;  // why Hopper's own products do not stand in for it; empty where they would
};

MatmulLibraryReport matmul_library_report();

}  // namespace gigpo
