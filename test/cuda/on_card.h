// Main function of the test programs of the CUDA device: runs the tests if there is a GPU, otherwise prints the reason.
#pragma once
#include <cstdio>
#include <initializer_list>

#include "core/device_report.h"
#include "cuda/check.h"
#include "test/core/check.h"

namespace gigpo::test {

// Returns the exit status of main.
template <class Tests>
int on_card(const Tests& tests) {
  const DeviceReport report = device_report();
  if (report.devices.empty()) {
    std::printf("skipped: %s\n", report.message.c_str());
    return 0;
  }
  CUDA_CHECK(cudaSetDevice(report.devices[0].index));
  return run_all(tests, [] { CUDA_CHECK(cudaDeviceSynchronize()); });  // attributes asynchronous failures to their test
}

}  // namespace gigpo::test
