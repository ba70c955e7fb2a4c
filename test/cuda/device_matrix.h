// Matrices and arrays on the device for tests of operations. The gaps between, before and after rows, and outputs not
// written yet, are NaN; reading a matrix back checks that the gaps are unchanged.
#pragma once
#include <cuda_bf16.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/bf16.h"
#include "core/random.h"
#include "core/tensor.h"
#include "cuda/check.h"
#include "test/core/check.h"

namespace gigpo::test {

inline uint32_t random_word(uint32_t stream, uint32_t i) { return philox({17, 9}, i, stream, 0, 0).word[0]; }

inline float normal(uint32_t stream, uint32_t i, double deviation) {
  const Philox words = philox({4, 8}, i, stream, 0, 0);
  return float(deviation * std::sqrt(-2 * std::log(double(open_uniform(words.word[0])))) *
               std::cos(6.283185307179586 * double(open_uniform(words.word[1]))));
}

// Flat array on the device.
template <class T>
struct DeviceArray {
  explicit DeviceArray(size_t count) : count(count) {
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data), bytes() + 16));
    CUDA_CHECK(cudaMemset(data, 0xFF, bytes() + 16));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    CUDA_CHECK(cudaMemcpy(data, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;

  size_t bytes() const { return count * sizeof(T); }
  std::vector<T> read() const {
    std::vector<T> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), data, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

  T* data = nullptr;
  size_t count;
};

// Layout of a matrix: elements between its rows, and from an aligned address to its first element.
struct Layout {
  const char* name;
  int64_t gap, offset;
};
constexpr Layout layouts[] = {{"dense", 0, 0}, {"aligned rows", 16, 8}, {"odd stride", 3, 0}, {"odd address", 0, 1}};

class DeviceMatrix {
 public:
  DeviceMatrix(Type type, int64_t rows, int64_t columns, const Layout& layout = layouts[0])
      : bytes_(size_t((2 * guard + layout.offset + rows * (columns + layout.gap)) * bytes_of(type)), 0xFF) {
    CUDA_CHECK(cudaMalloc(&data_, bytes_.size()));
    CUDA_CHECK(cudaMemset(data_, 0xFF, bytes_.size()));
    view = {static_cast<char*>(data_) + (guard + layout.offset) * bytes_of(type), type, rows, columns, columns + layout.gap};
  }
  ~DeviceMatrix() { cudaFree(data_); }
  DeviceMatrix(const DeviceMatrix&) = delete;

  // Fills the matrix and returns its contents, rounded to its type.
  std::vector<float> fill(std::vector<float> values) {
    for (size_t i = 0; i < values.size(); i++) {
      char* to = place(int64_t(i));
      if (view.type == Type::f32) {
        std::memcpy(to, &values[i], 4);
      } else {
        const uint16_t half = to_bf16(values[i]);
        std::memcpy(to, &half, 2);
        values[i] = from_bf16(half);
      }
    }
    CUDA_CHECK(cudaMemcpy(data_, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice));
    return values;
  }
  std::vector<float> fill(uint32_t stream, double deviation = 1) {
    std::vector<float> values;
    for (int64_t i = 0; i < view.rows * view.columns; i++) values.push_back(normal(stream, uint32_t(i), deviation));
    return fill(values);
  }

  // Returns the values, and checks that all other memory is unchanged.
  std::vector<float> read(const std::string& what) {
    std::vector<char> expected = bytes_;
    CUDA_CHECK(cudaMemcpy(bytes_.data(), data_, bytes_.size(), cudaMemcpyDeviceToHost));
    std::vector<float> values(size_t(view.rows * view.columns));
    for (size_t i = 0; i < values.size(); i++) {
      const char* from = place(int64_t(i));
      uint16_t half;
      if (view.type == Type::f32) std::memcpy(&values[i], from, 4);
      else std::memcpy(&half, from, 2), values[i] = from_bf16(half);
      std::memcpy(&expected[size_t(from - bytes_.data())], from, size_t(bytes_of(view.type)));
    }
    CHECK(expected == bytes_, "%s: written outside of the matrix", what.c_str());
    return values;
  }

  Tensor view;

 private:
  static constexpr int64_t guard = 64;

  char* place(int64_t element) {
    const int64_t at = element / view.columns * view.stride + element % view.columns;
    return bytes_.data() + (static_cast<char*>(view.data) - static_cast<char*>(data_)) + at * bytes_of(view.type);
  }

  void* data_ = nullptr;
  std::vector<char> bytes_;  // last known contents of the device memory
};

// Checks each value within `tolerance` relative to its size or to `scale`, plus one rounding in bf16.
inline void check_near(const std::string& what, Type type, const std::vector<float>& found,
                       const std::vector<double>& expected, double tolerance, double scale = 1) {
  if (!CHECK(found.size() == expected.size(), "%s", what.c_str())) return;
  const double rounding = type == Type::bf16 ? 1.0 / 256 : 0;
  for (size_t i = 0; i < found.size(); i++) {
    const double size = std::fabs(expected[i]);
    const bool near = std::fabs(found[i] - expected[i]) <= tolerance * std::fmax(scale, size) + rounding * size;
    if (!CHECK(near, "%s: element %d is %.9g, not %.9g", what.c_str(), int(i), double(found[i]), expected[i])) return;
  }
}

inline std::string name_of(Type type) { return type == Type::f32 ? "f32" : "bf16"; }

}  // namespace gigpo::test
