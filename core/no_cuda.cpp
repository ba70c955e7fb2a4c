// Stands in for cuda/ in a build without nvcc.
#include "core/device_report.h"

namespace gigpo {

DeviceReport device_report() {
  return {Unavailable::not_built, "This build of gigpo has no CUDA code: build it where nvcc is on the PATH.", {}};
}

}  // namespace gigpo
