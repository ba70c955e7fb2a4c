// CUDA graphs of kernel sequences that are repeated on the same addresses. A sampling step consists of some hundred kernels of a few
// microseconds each, and launching them one by one takes longer than running them.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>

#include "core/device.h"
#include "cuda/check.h"

namespace gigpo::cuda {

class Recordings {
 public:
  explicit Recordings(cudaStream_t stream) : stream_(stream) {}
  ~Recordings() { forget(); }
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // Runs `operations` directly the first time, so that allocations and loading are done; records them the second time.
  void replay(const Device::ReplayKey& key, const std::function<void()>& operations) {
    if (recorded_ >= most || recordings_.size() >= 64 * most) forget();
    const auto [found, fresh] = recordings_.try_emplace(key, nullptr);
    if (fresh || no_room_) return operations();
    if (!found->second) {
      const cudaGraphExec_t recorded = record(operations);
      if (!recorded) return operations();
      found->second = recorded;
      recorded_++;
    }
    CUDA_CHECK(cudaGraphLaunch(found->second, stream_));
  }

  // Must be called when addresses change that are part of a recording but not of its key.
  void forget() {
    for (const auto& [key, executable] : recordings_) {
      if (executable) cudaGraphExecDestroy(executable);
    }
    recordings_.clear();
    recorded_ = 0;
  }

 private:
  static constexpr size_t most = 512;  // maximum number of graphs; sequences that ran only once need only a key

  // Recorded graph; null if the device has no memory for it, and then recording stops.
  cudaGraphExec_t record(const std::function<void()>& operations) {
    CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      operations();
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);  // the stream must not stay in this state
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    cudaGraphExec_t executable = nullptr;
    cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    // Otherwise the first launch would allocate memory, where a failure can no longer be handled.
    if (status == cudaSuccess) status = cudaGraphUpload(executable, stream_);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      if (executable) cudaGraphExecDestroy(executable);
      forget();
      no_room_ = true;
      return nullptr;
    }
    CUDA_CHECK(status);
    return executable;
  }

  cudaStream_t stream_;
  bool no_room_ = false;
  size_t recorded_ = 0;
  std::map<Device::ReplayKey, cudaGraphExec_t> recordings_;
};

}  // namespace gigpo::cuda
