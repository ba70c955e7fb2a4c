// Two kernels, of which the second may start before the first ends (launch_early), and the errors that this makes
// possible.
#pragma once
#include "cuda/launch.h"
#include "cuda/ptx.cuh"
#include "test/cuda/emulator/array.h"

namespace gigpo::cuda {

enum class Early { nothing, end, read, write, read_shared };

struct EarlyMistake {
  Early early;
  const char* message;
};
constexpr EarlyMistake early_mistakes[] = {{Early::end, "without waiting for the previous kernel"},
                                           {Early::read, "the result is wrong"},
                                           {Early::write, "the result is wrong"},
                                           {Early::read_shared, "the result is wrong"}};

namespace early {

constexpr unsigned blocks = 3, threads = 64, count = blocks * threads;

__device__ inline unsigned own_index() { return blockIdx.x * threads + threadIdx.x; }

__global__ inline void add_one(const int* from, int* to) { to[own_index()] = from[own_index()] + 1; }

// to = middle + constant; `from` may be overwritten afterwards.
template <Early early>
__global__ void add_constant(const int* constant, int* from, const int* middle, int* to) {
  const unsigned i = own_index();
  if (early == Early::end && threadIdx.x == 7) return;
  copy_async_16(dynamic_shared<int>() + 4 * threadIdx.x, constant + 4 * i, true);
  copy_async_commit();
  int value = early == Early::read ? middle[i] : 0;
  if (early == Early::read_shared) dynamic_shared<int>()[4 * threads + threadIdx.x] = middle[i];
  if (early == Early::write) from[i] = 0;
  wait_for_previous_kernel();
  from[i] = 0;
  if (early == Early::nothing || early == Early::write) value = middle[i];
  if (early == Early::read_shared) value = dynamic_shared<int>()[4 * threads + threadIdx.x];
  copy_async_wait<0>();
  to[i] = value + dynamic_shared<int>()[4 * threadIdx.x];
}

template <Early early>
bool run() {
  const emulator::Array<int> constant(4 * count), from(count), middle(count), to(count);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launch(add_one, blocks, threads, 0, stream, from.data, middle.data);
  launch_early(add_constant<early>, blocks, threads, 5 * threads * sizeof(int), stream, constant.data, from.data,
                         middle.data, to.data);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  bool right = true;
  for (int step = 0; step < 4; step++) {
    for (unsigned i = 0; i < count; i++) from[i] = int(i) + 1000 * step, constant[4 * i] = 10 * int(i);
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (unsigned i = 0; i < count; i++) right &= to[i] == int(11 * i) + 1000 * step + 1 && from[i] == 0;
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return right;
}

}  // namespace early

inline bool add_with(Early early) {
  switch (early) {
    case Early::nothing: return early::run<Early::nothing>();
    case Early::end: return early::run<Early::end>();
    case Early::read: return early::run<Early::read>();
    case Early::write: return early::run<Early::write>();
    default: return early::run<Early::read_shared>();
  }
}

}  // namespace gigpo::cuda
