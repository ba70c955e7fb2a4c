#include "core/device.h"
#include "core/device_report.h"
#include "core/error.h"

namespace gigpo {

DeviceReport device_report() {
  return {Unavailable::not_built, "This build has no CUDA in it. Install the CUDA toolkit and build again.", {}};
}

std::unique_ptr<Device> make_cuda_device(const CudaOptions&) {
  throw Error("DEVICE_UNAVAILABLE", device_report().message);
}

}  // namespace gigpo
