// Program that cuda/enable.cmake runs at configuration: its exit status is 0 if the addon would find NVIDIA's driver,
// and it prints the compute capability of each usable GPU, one per line (90). It only uses the driver, so the CUDA
// toolkit is not needed.
#include <dlfcn.h>

#include <cstdio>

int main() {
  // The name under which the CUDA runtime loads it, too; the stub of the toolkit has another.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return 1;
  const auto initialize = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  constexpr int capability_major = 75, capability_minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  constexpr int oldest_major = 8;                              // as in device_report.cu
  int count = 0, major = 0, minor = 0;
  if (!initialize || !count_devices || !attribute || initialize(0) != 0 || count_devices(&count) != 0) return 0;
  for (int device = 0; device < count; device++) {
    if (attribute(&major, capability_major, device) != 0 || attribute(&minor, capability_minor, device) != 0) continue;
    if (major >= oldest_major) std::printf("%d%d\n", major, minor);
  }
  return 0;
}
