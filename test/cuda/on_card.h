// The main of every test program of the CUDA device: runs its tests where there is a GPU, and elsewhere says why not.
#pragma once
#include <cstdio>
#include <initializer_list>

#include "core/device_report.h"
#include "cuda/check.h"
#include "test/core/check.h"

namespace gigpo::test {

// The exit status of main.
template <class Tests>
int on_card(const Tests& tests) {
  const DeviceReport report = device_report();
  if (report.devices.empty()) {
    std::printf("skipped: %s\n", report.message.c_str());
    return 0;
  }
  CUDA_CHECK(cudaSetDevice(report.devices[0].index));
  return run_all(tests, [] { CUDA_CHECK(cudaDeviceSynchronize()); });  // a kernel that failed late belongs to its test
}

}  // namespace gigpo::test
