#include "core/device_report.h"

namespace gigpo {

DeviceReport device_report() {
  return {Unavailable::not_built, "This build has no CUDA in it. Install the CUDA toolkit and build again.", {}};
}

}  // namespace gigpo
