// Conformance of the emulated runtime with CUDA's, with the latest permitted timing.
#include <cstdlib>
#include <thread>

#include "cuda/launch.h"
#include "cuda/recordings.h"
#include "test/core/check.h"
#include "test/cuda/emulator/array.h"

using namespace gigpo::cuda;
using emulator::Array;

namespace {

__global__ void add(int* to, int value) { *to += value; }

void test_memory_runs_out() {
  emulator::memory_limit = 1 << 20;
  void *first = nullptr, *second = nullptr;
  size_t free_bytes = 0, total = 0;
  CHECK(cudaMalloc(&first, 1 << 19) == cudaSuccess);
  CHECK(cudaMalloc(&second, (1 << 19) + 1) == cudaErrorMemoryAllocation && second == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes == 1 << 19 && total == 1 << 20);
  CHECK(cudaFree(static_cast<char*>(first) + 16) == cudaErrorInvalidValue && cudaFree(first) == cudaSuccess);
  CHECK(cudaMalloc(&second, 1 << 20) == cudaSuccess && cudaFree(second) == cudaSuccess);
  emulator::memory_limit = size_t{4} << 30;
}

void test_copies_check_the_kind_of_memory() {
  const Array<int> device(4);
  int host[5] = {1, 2, 3, 4, 5};
  CHECK(cudaMemcpy(device.data, host, 16, cudaMemcpyHostToDevice) == cudaSuccess && device[3] == 4);
  CHECK(cudaMemcpy(device.data, host, 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, device.data, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(device.data, 0, 17) == cudaErrorInvalidValue && cudaMemset(device.data, 0, 16) == cudaSuccess);
  CHECK(cudaMemcpy2D(host, 8, device.data, 8, 4, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[0] == 0 && host[1] == 2 && host[2] == 0 && host[3] == 4);
  cudaGetLastError();
}

void test_streams_are_late() {
  const Array<int> device(1);
  device[0] = 0;
  cudaStream_t one, two;
  cudaEvent_t event;
  int* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(int)));
  CUDA_CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreate(&event));
  launch(add, 1, 1, 0, one, device.data, 5);
  CUDA_CHECK(cudaEventRecord(event, one));
  launch(add, 1, 1, 0, one, device.data, 100);
  CUDA_CHECK(cudaMemcpyAsync(pinned, device.data, sizeof(int), cudaMemcpyDeviceToHost, two));
  CHECK(device[0] == 0 && *pinned == -1);
  CUDA_CHECK(cudaStreamSynchronize(two));
  CHECK(*pinned == 0);  // did not wait for the other stream
  CUDA_CHECK(cudaStreamWaitEvent(two, event));
  CUDA_CHECK(cudaMemcpyAsync(pinned, device.data, sizeof(int), cudaMemcpyDeviceToHost, two));
  CUDA_CHECK(cudaStreamSynchronize(two));
  CHECK(*pinned == 5);
  CUDA_CHECK(cudaDeviceSynchronize());
  CHECK(device[0] == 105);
  int pageable = 7;
  CUDA_CHECK(cudaMemcpyAsync(device.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, one));
  *pinned = pageable = 9;  // the first value was staged at the call
  CUDA_CHECK(cudaStreamSynchronize(one));
  CHECK(device[0] == 7);
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(one));
  CUDA_CHECK(cudaStreamDestroy(two));
  CUDA_CHECK(cudaFreeHost(pinned));
}

void test_graphs_replay() {
  const Array<int> device(1);
  device[0] = 0;
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  void* pointer = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int value = 3;
  launch(add, 1, 1, 0, stream, device.data, value);
  value = 1000;  // the graph has its own copy
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(other, fork));
  launch(add, 1, 1, 0, other, device.data, 4);
  CUDA_CHECK(cudaEventRecord(join, other));
  CUDA_CHECK(cudaStreamWaitEvent(stream, join));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(device[0] == 0);
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; i++) CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CHECK(device[0] == 0);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(device[0] == 21);
  CUDA_CHECK(cudaGraphExecDestroy(executable));

  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMalloc(&pointer, 16) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMalloc(&pointer, 16) == cudaSuccess && cudaFree(pointer) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  CUDA_CHECK(cudaEventDestroy(fork));
  CUDA_CHECK(cudaEventDestroy(join));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaStreamDestroy(other));
}

// If the device has no memory for a recording, it is never launched: its operations always run directly.
void test_recordings_need_memory() {
  const Array<int> device(1);
  device[0] = 0;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  size_t free_bytes = 0, total = 0, after = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
  {
    Recordings recordings(stream);
    int launches = 0;
    const auto replay = [&](uint64_t key) {
      recordings.replay({key}, [&] {
        launches++;
        launch(add, 1, 1, 0, stream, device.data, 1);
      });
    };
    for (int i = 0; i < 4; i++) replay(1);
    CHECK(launches == 2);  // once directly, once recorded
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    CHECK(after < free_bytes);
    emulator::memory_limit = total - after;
    for (int i = 0; i < 4; i++) replay(2);
    CHECK(launches == 7, "%d", launches);  // directly, with a failed recording, and directly from then on
    emulator::memory_limit = total;
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(device[0] == 8, "%d", device[0]);
  }
  CUDA_CHECK(cudaMemGetInfo(&after, &total));
  CHECK(after == free_bytes);
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void test_devices_are_apart() {
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  setenv("GIGPO_EMULATED_GPUS", "3", 1);
  int count = 0, direct = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count == 3);
  void* memory[2];
  cudaStream_t streams[2];
  size_t free_bytes[2], total = 0;
  for (int device : {0, 1}) {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&memory[device], 4 + 12 * size_t(device)));
    CUDA_CHECK(cudaMemGetInfo(&free_bytes[device], &total));
  }
  CHECK(free_bytes[0] == free_bytes[1] + 12);
  const auto add_on = [&](cudaStream_t stream) { launch(add, 1, 1, 0, stream, static_cast<int*>(memory[1]), 7); };
  CUDA_CHECK(cudaMemset(memory[1], 0, 16));
  add_on(streams[1]);
  CHECK(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, 4, streams[0]) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemcpyPeerAsync(memory[0], 1, memory[1], 1, 4, streams[1]) == cudaErrorInvalidValue);
  CHECK_THROWS(add_on(streams[0]), "DEVICE_LOST");
  CUDA_CHECK(cudaStreamSynchronize(streams[1]));
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, 4, streams[0]));
  CUDA_CHECK(cudaStreamSynchronize(streams[0]));
  CHECK(*static_cast<int*>(memory[0]) == 7);
  CHECK(cudaDeviceCanAccessPeer(&direct, 0, 2) == cudaSuccess && direct == 1);
  CHECK(cudaDeviceEnablePeerAccess(2, 0) == cudaSuccess && cudaDeviceEnablePeerAccess(2, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceCanAccessPeer(&direct, 0, 1) == cudaSuccess && direct == 0);

  // A capture of one thread is not disturbed by the calls of others.
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
  std::thread([] {
    void* other = nullptr;
    CHECK(cudaMalloc(&other, 4) == cudaSuccess && cudaFree(other) == cudaSuccess);
  }).join();
  CHECK(cudaStreamEndCapture(streams[0], &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);

  setenv("GIGPO_EMULATED_LOST", "1", 1);
  CHECK(cudaStreamSynchronize(streams[0]) == cudaSuccess && cudaStreamSynchronize(streams[1]) == cudaErrorIllegalAddress);
  unsetenv("GIGPO_EMULATED_LOST");
  for (int device : {0, 1}) CHECK(cudaStreamDestroy(streams[device]) == cudaSuccess && cudaFree(memory[device]) == cudaSuccess);
  unsetenv("GIGPO_EMULATED_GPUS");
  cudaGetLastError();
}

constexpr gigpo::test::Test tests[] = {{"device memory", test_memory_runs_out},
                          {"copies", test_copies_check_the_kind_of_memory},
                          {"streams", test_streams_are_late},
                          {"graphs", test_graphs_replay},
                          {"recordings", test_recordings_need_memory},
                          {"several devices", test_devices_are_apart}};

}  // namespace

int main() {
  return gigpo::test::run_all(tests);
}
