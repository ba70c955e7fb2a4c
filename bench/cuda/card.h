// What a card does at its best, measured in the same run as what is held against it.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "core/device.h"
#include "cuda/check.h"

namespace gigpo::bench {

// Seconds a call on the default stream, by the card's own clock, over enough calls for a tenth of a second.
inline double seconds_a_call(const std::function<void(int)>& call) {
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  const auto measure = [&](int count) {
    CUDA_CHECK(cudaEventRecord(begin, nullptr));
    for (int i = 0; i < count; i++) call(i);
    CUDA_CHECK(cudaEventRecord(end, nullptr));
    CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds / 1e3 / count;
  };
  measure(3);
  const double rough = measure(10), seconds = measure(int(std::clamp(0.1 / rough, 10.0, 10000.0)));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return seconds;
}

constexpr double datasheet_operations = 989e12;  // dense bf16 of an H100 or H200: what MFU is usually counted by

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median of five, after two to warm up. `work` must wait for the card.
inline double median_seconds(const std::function<void()>& work) {
  work(), work();
  std::vector<double> times;
  for (int i = 0; i < 5; i++) times.push_back(seconds_of(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// What the card does at its best, measured in this run.
struct Card {
  double bytes_per_second;  // read and written, of a large copy
  double operations_per_second;
};

inline void wait(Device& device, const void* some) {
  uint32_t word;
  device.download(&word, some, sizeof(word));
}

// bf16 numbers of both signs, as large as `smallest` to four times that: a card is faster at zeros. 0x3C00 is 0.008, 0x3F80 is 1.
inline void fill_with_noise(Device& device, void* data, int64_t count, uint16_t smallest = 0x3C00) {
  std::vector<uint16_t> noise(std::min<int64_t>(count, 1 << 20));
  for (size_t i = 0; i < noise.size(); i++) {
    const uint32_t word = philox({5, 5}, uint32_t(i), 0, 0, 0).word[0];
    noise[i] = uint16_t((word & 0x8000) | (smallest + word % 0x100));
  }
  for (int64_t at = 0; at < count; at += int64_t(noise.size())) {
    const size_t some = size_t(std::min<int64_t>(count - at, int64_t(noise.size())));
    device.upload(static_cast<uint16_t*>(data) + at, noise.data(), some * sizeof(uint16_t));
  }
}

inline Card measure_card(Device& device, bool small) {
  const int64_t n = small ? 256 : 8192;
  const size_t bytes = small ? size_t{1} << 20 : size_t{2} << 30;
  auto *from = device.allocate(bytes), *to = device.allocate(bytes);
  fill_with_noise(device, from, int64_t(bytes / 2));
  wait(device, from);
  const double copy = seconds_a_call([&](int) { CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr)); });
  const Tensor a{from, Type::bf16, n, n, n}, c{to, Type::bf16, n, n, n};
  const double product = median_seconds([&] {
    for (int i = 0; i < 4; i++) device.matmul(a, false, a, true, c, false);
    wait(device, to);
  });
  device.release(from);
  device.release(to);
  return {2 * double(bytes) / copy, 4 * 2 * double(n) * double(n) * double(n) / product};
}

}  // namespace gigpo::bench
