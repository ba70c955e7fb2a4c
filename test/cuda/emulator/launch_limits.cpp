// Limits of launches. The static shared memory and registers of a kernel are known only to ptxas: kernel_resources.inc
// contains its output.
#include "launch_limits.h"

#include <map>
#include <mutex>
#include <string>

#include "kernel_names.h"
#include "streams.h"

namespace gigpo::cuda::emulator {

namespace {

constexpr size_t shared_without_asking = 48 << 10, most_shared = 227 << 10;
constexpr int registers_of_block = 65536, lanes = 32;

struct Compiled {
  const char* kernel;
  size_t static_shared;
  struct {
    int registers, spilled;
  } sm_80, sm_90a;
};
constexpr Compiled compiled[] = {
#include "kernel_resources.inc"
};

struct Kernel {
  Resources resources;
  size_t allowed;  // dynamic shared memory
};

// Kernels that are not in the table (those of tests) use no resources, unless set.
Kernel& kernel_at(const void* function) {
  static auto& kernels = *new std::map<const void*, Kernel>;
  const auto [found, fresh] = kernels.try_emplace(function);
  Kernel& kernel = found->second;
  if (!fresh) return kernel;
  const std::string name = kernel_name(function);
  for (const Compiled& each : compiled) {
    if (name == each.kernel) kernel.resources = {each.static_shared, each.sm_90a.registers};
  }
  kernel.allowed = shared_without_asking - kernel.resources.static_shared;
  return kernel;
}

// Registers are allocated to warps in units of 256.
int most_threads_of(const Resources& resources) {
  if (resources.registers == 0) return 1024;
  const int of_warp = (resources.registers * lanes + 255) / 256 * 256;
  return std::min(registers_of_block / of_warp * lanes, 1024);
}

}  // namespace

Resources resources_of(const void* function) {
  const Lock lock(one_call);
  return kernel_at(function).resources;
}

void set_resources(const void* function, Resources resources) {
  const Lock lock(one_call);
  kernel_at(function) = {resources, shared_without_asking - resources.static_shared};
}

cudaError_t check_limits(const void* function, unsigned threads, size_t shared_bytes) {
  const Lock lock(one_call);
  const Kernel& kernel = kernel_at(function);
  if (shared_bytes > kernel.allowed) return cudaErrorInvalidValue;
  if (int(threads) > most_threads_of(kernel.resources)) return cudaErrorLaunchOutOfResources;
  return cudaSuccess;
}

}  // namespace gigpo::cuda::emulator

using namespace gigpo::cuda::emulator;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const Lock lock(one_call);
  const Kernel& kernel = kernel_at(function);
  *attributes = {.sharedSizeBytes = kernel.resources.static_shared,
                 .maxThreadsPerBlock = most_threads_of(kernel.resources),
                 .numRegs = kernel.resources.registers,
                 .ptxVersion = 90,
                 .maxDynamicSharedSizeBytes = int(kernel.allowed)};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const Lock lock(one_call);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  Kernel& kernel = kernel_at(function);
  if (value < 0 || size_t(value) + kernel.resources.static_shared > most_shared) return result(cudaErrorInvalidValue);
  kernel.allowed = size_t(value);
  return cudaSuccess;
}
