// Second stream for the losses of the head, concurrent with its products, and the split of the multiprocessors between both.
//
// The losses are bandwidth-bound, the products are compute-bound, but two streams alone have no benefit: a product with the vocabulary has
// 20,000 tiles, each fills a multiprocessor, and the blocks of the other stream wait for the last tile. Therefore the stream of the losses has
// priority, but uses only as many multiprocessors as needed to finish together with the products. Persistent kernels of products leave these
// multiprocessors free.
//
// Prediction for 4,096 rows of 151,936 logits and H = 1,536 on an H100 (3.0 TB/s, 700 TFLOP/s; per multiprocessor 64
// bytes per ns and 5.3 TFLOP/s): products 8.2 ms, losses alone 2.0 ms (1.5 MB per row), 10.2 ms sequentially. On 12 of
// 132 multiprocessors a row takes 24 us, so the losses take 8.1 ms, next to products of 9.0 ms: 10 % less for every
// chunk except the first and last, which have less to overlap with. With H = 896: 5.6 instead of 4.8 + 2.0 ms. This
// assumes that the losses' blocks, several per multiprocessor, gather on their share. Blocks that begin before the
// product's may spread over more, so that some of the product's blocks run in a second wave. The option is therefore
// off by default (CudaOptions::two_streams) until it has been measured on a GPU.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "core/tensor.h"
#include "cuda/check.h"

namespace gigpo::cuda {

// Number of multiprocessors, out of `all`, for losses that move this many bytes, so that losses and products take equally long.
inline int share_of_losses(double bytes, double multiplications, int all, Type type) {
  constexpr double bytes_a_second = 64e9;  // per multiprocessor
  const double multiplications_a_second = type == Type::bf16 ? 2.65e12 : 0.25e12;
  const double losses = bytes / bytes_a_second, products = multiplications / multiplications_a_second;
  return std::clamp(int(all * losses / (losses + products) + 0.5), 1, all - 1);
}

class SideStream {
 public:
  static constexpr int lanes = 2;

  explicit SideStream(cudaStream_t main) : main_(main) {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, greatest));
    CUDA_CHECK(cudaEventCreateWithFlags(&before_, cudaEventDisableTiming));
    for (cudaEvent_t& after : after_) CUDA_CHECK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
  }
  ~SideStream() {
    cudaStreamSynchronize(handle_);
    for (const cudaEvent_t after : after_) cudaEventDestroy(after);
    cudaEventDestroy(before_);
    cudaStreamDestroy(handle_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t handle() const { return handle_; }

  // Queues `operations` on the side stream after everything queued on the main stream so far. A recording of the main
  // stream includes the side stream from the first event to the last.
  void fork(int lane, const std::function<void()>& operations) {
    CUDA_CHECK(cudaEventRecord(before_, main_));
    CUDA_CHECK(cudaStreamWaitEvent(handle_, before_, 0));
    forked_[lane] = true;
    operations();
    CUDA_CHECK(cudaEventRecord(after_[lane], handle_));
  }
  void join(int lane) {
    if (forked_[lane]) CUDA_CHECK(cudaStreamWaitEvent(main_, after_[lane], 0));
    forked_[lane] = false;
  }

 private:
  cudaStream_t main_, handle_ = nullptr;
  cudaEvent_t before_ = nullptr;
  std::array<cudaEvent_t, lanes> after_ = {};
  std::array<bool, lanes> forked_ = {};
};

}  // namespace gigpo::cuda
