// fp32 sums of small integers, and their rounding to bf16, are exact in any order, so every bit of a product is known
// and any disagreement about the interface shows.
#include "cuda/matmul_self_test.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "cuda/check.h"
#include "cuda/operations.h"

namespace gigpo::cuda {

namespace {

// Set once and for all: nothing that waits for the device returns afterwards.
std::atomic<bool> hangs = false;

constexpr std::chrono::seconds patience(60);  // the test takes well below a second

void await(const std::string& name) {
  if (!hangs && ends_within(patience, [] { return cudaStreamQuery(nullptr); })) return CUDA_CHECK(cudaDeviceSynchronize());
  hangs = true;
  throw Error("DEVICE_LOST", "The GPU did not end " + name + " within " + std::to_string(patience.count()) + " s.");
}

struct Trial {
  Type type, c_type;
  bool transpose_a, transpose_b;
  int64_t m, n, k, padding;
  bool bias, added, in_place;
};

class IntegerMatrix {
 public:
  IntegerMatrix(Type type, int64_t rows, int64_t columns, int64_t padding, int salt) {
    view_ = {nullptr, type, rows, columns, columns + padding};
    bytes_.resize(size_t(rows * view_.stride * bytes_of(type)));
    for (int64_t i = 0; i < rows * view_.stride; i++) put(i, float((i * i / 7 + i * 5 + salt) % 7 - 3));
    CUDA_CHECK(cudaMalloc(&view_.data, bytes_.size()));
    const cudaError_t status = cudaMemcpy(view_.data, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice);
    if (status != cudaSuccess) cudaFree(view_.data);
    CUDA_CHECK(status);
  }
  ~IntegerMatrix() {
    if (!hangs) cudaFree(view_.data);
  }
  IntegerMatrix(const IntegerMatrix&) = delete;

  const Tensor& view() const { return view_; }
  float at(int64_t row, int64_t column) const {
    const size_t i = size_t(row * view_.stride + column);
    uint32_t bits = 0;
    if (view_.type == Type::f32) std::memcpy(&bits, &bytes_[4 * i], 4);
    else std::memcpy(reinterpret_cast<char*>(&bits) + 2, &bytes_[2 * i], 2);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  void set(int64_t row, int64_t column, float value) { put(row * view_.stride + column, value); }
  std::vector<char> on_device() const {
    std::vector<char> now(bytes_.size());
    CUDA_CHECK(cudaMemcpy(now.data(), view_.data, now.size(), cudaMemcpyDeviceToHost));
    return now;
  }
  bool is_on_device() const { return on_device() == bytes_; }

 private:
  void put(int64_t i, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (view_.type == Type::f32) {
      std::memcpy(&bytes_[4 * size_t(i)], &bits, 4);
    } else {
      bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;  // to nearest even
      std::memcpy(&bytes_[2 * size_t(i)], &bits, 2);
    }
  }

  Tensor view_;
  std::vector<char> bytes_;
};

enum class Outcome { right, wrong, refused };

// Whether two matrices in bf16 have the same values; 0 and -0 are equal.
bool same_values(const IntegerMatrix& one, const IntegerMatrix& other) {
  const std::vector<char> bytes[] = {one.on_device(), other.on_device()};
  for (size_t i = 0; i < bytes[0].size(); i += 2) {
    uint16_t values[2];
    for (int side = 0; side < 2; side++) std::memcpy(&values[side], &bytes[side][i], 2);
    if (values[0] != values[1] && ((values[0] | values[1]) & 0x7FFF) != 0) return false;
  }
  return true;
}

Outcome try_product(const Multiply& multiply, const Trial& t, void* workspace, size_t workspace_bytes, const std::string& name) {
  const IntegerMatrix a(t.type, t.transpose_a ? t.k : t.m, t.transpose_a ? t.m : t.k, t.padding, 1);
  const IntegerMatrix b(t.type, t.transpose_b ? t.n : t.k, t.transpose_b ? t.k : t.n, t.padding, 2);
  const IntegerMatrix bias(t.type, 1, t.n, 0, 3), other(t.c_type, t.m, t.n, 2 * t.padding, 4);
  IntegerMatrix c(t.c_type, t.m, t.n, t.padding, 5);
  Matmul product = {a.view(), t.transpose_a, b.view(), t.transpose_b, {}, {}, c.view()};
  if (t.bias) product.bias = bias.view();
  if (t.added) product.added = t.in_place ? c.view() : other.view();
  const bool taken = multiply(product, workspace, workspace_bytes, nullptr);
  await(name);
  if (!taken) return Outcome::refused;
  for (int64_t i = 0; i < t.m; i++) {
    for (int64_t j = 0; j < t.n; j++) {
      float sum = (t.bias ? bias.at(0, j) : 0) + (t.added ? (t.in_place ? c.at(i, j) : other.at(i, j)) : 0);
      for (int64_t k = 0; k < t.k; k++) {
        sum += (t.transpose_a ? a.at(k, i) : a.at(i, k)) * (t.transpose_b ? b.at(j, k) : b.at(k, j));
      }
      c.set(i, j, sum);
    }
  }
  return c.is_on_device() ? Outcome::right : Outcome::wrong;
}

}  // namespace

bool self_test_hangs() { return hangs; }

bool ends_within(std::chrono::milliseconds most, const std::function<cudaError_t()>& query) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (query() == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::string gated_self_test(const MultiplyGated& both, const Multiply& multiply, const std::string& name) {
  constexpr int64_t rows = 136, half = 200, k = 264;  // two tiles of rows: a pair of blocks
  const IntegerMatrix x(Type::bf16, rows, k, 8, 1), weight(Type::bf16, 2 * half, k, 0, 2);
  const IntegerMatrix gate_up(Type::bf16, rows, 2 * half, 8, 3), activated(Type::bf16, rows, half, 8, 4);
  const IntegerMatrix gate_up_after(Type::bf16, rows, 2 * half, 8, 3), activated_after(Type::bf16, rows, half, 8, 4);
  const bool taken = both(x.view(), weight.view(), gate_up.view(), activated.view(), nullptr) &&
                     multiply({x.view(), false, weight.view(), true, {}, {}, gate_up_after.view()}, nullptr, 0, nullptr);
  gated_unit(gate_up_after.view(), Gate::silu, activated_after.view(), nullptr);
  await(name);
  if (!taken) return "no gated product";
  return same_values(gate_up, gate_up_after) && same_values(activated, activated_after) ? "" : "wrong gated product";
}

std::string matmul_self_test(const Multiply& multiply, const std::string& name) {
  const Type f32 = Type::f32, bf16 = Type::bf16;
  const Trial trials[] = {
      {bf16, bf16, false, true, 128, 128, 128, 0, false, false, false},  // support is required for this one
      {bf16, f32, false, false, 128, 128, 128, 0, false, false, false},
      {bf16, bf16, false, true, 40, 72, 56, 8, true, false, false},
      {bf16, f32, true, false, 48, 72, 33, 8, false, true, true},
      {bf16, bf16, false, true, 33, 72, 40, 8, true, true, false},
      {bf16, f32, false, false, 200, 272, 520, 0, true, false, false},  // several tiles, each larger than what a block holds at once
      {bf16, bf16, false, true, 200, 272, 520, 0, true, false, false},  // the forward product of training, in pairs of blocks
      {bf16, bf16, true, false, 136, 264, 392, 0, false, true, false},
      {bf16, f32, true, false, 72, 72, 1037, 0, false, true, true},  // few tiles and large k, which is summed in ranges
      {f32, f32, false, true, 37, 41, 29, 3, true, true, true},
  };
  constexpr size_t workspace_bytes = 32 << 20;
  void* workspace = nullptr;
  CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));
  struct Free {
    void* data;
    ~Free() {
      if (!hangs) cudaFree(data);
    }
  } freed{workspace};
  for (const Trial& trial : trials) {
    const Outcome outcome = try_product(multiply, trial, workspace, workspace_bytes, name);
    const std::string shape = std::to_string(trial.m) + " x " + std::to_string(trial.n) + " x " + std::to_string(trial.k);
    if (outcome == Outcome::wrong) return "wrong product of " + shape;
    if (outcome == Outcome::refused && &trial == trials) return "it has no algorithm for " + shape;
  }
  return "";
}

}  // namespace gigpo::cuda
