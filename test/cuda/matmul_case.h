// One product of random matrices: expected values in double, error bounds of fp32, and a check for writes outside of C.
#pragma once
#include <cuda_bf16.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/random.h"
#include "cuda/check.h"
#include "cuda/matmul.h"
#include "test/core/check.h"

namespace gigpo::test {

using cuda::Matmul;
using cuda::MatmulTile;

enum class Added { none, same, other };

struct Case {
  Type type = Type::bf16, c_type = Type::f32;
  bool transpose_a = false, transpose_b = false;
  int64_t m = 1, n = 1, k = 1;
  int64_t padding = 0, c_padding = 0;  // stride - columns
  int64_t offset = 0;                  // elements from an aligned pointer
  bool bias = false;
  Added added = Added::none;
  bool workspace = false;
  float factor = 1;
  MatmulTile tile = MatmulTile::chosen;
  int64_t first_row = 0, of_rows = 0;  // op(A) and `added` are rows of larger matrices (A not transposed)
};

inline uint32_t random_word(uint32_t stream, uint32_t i) { return philox({41, 3}, i, stream, 0, 0).word[0]; }

// Up to 2 in magnitude, with 8 bits and exponents so different that fp32 rounds nearly every sum; the same values in
// bf16 and fp32.
inline float random_value(uint32_t stream, uint32_t i) {
  const uint32_t word = random_word(stream, i);
  const float size = std::ldexp(float(128 + word % 128), -7 - int(word >> 8) % 10);
  return word >> 31 ? -size : size;
}

inline uint16_t bf16_bits(float x) {
  const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
  uint16_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

// Random small product with all options; the number determines the case.
inline Case random_case(uint32_t number) {
  auto pick = [number, at = uint32_t(0)](int64_t below) mutable { return int64_t(random_word(900 + at++, number) % below); };
  Case c;
  c.type = number % 4 == 3 ? Type::f32 : Type::bf16;
  c.transpose_a = pick(2), c.transpose_b = pick(2);
  const int64_t step = pick(2) ? 8 : 1;  // only multiples of 8 support 16-byte copies
  c.m = (1 + pick(140 / step)) * step, c.n = (1 + pick(140 / step)) * step, c.k = (1 + pick(200 / step)) * step;
  if (step == 8 && c.transpose_a && !c.transpose_b) c.k += pick(8);  // k counts rows in this case
  if (step == 8 && !c.transpose_a) c.m += pick(8);
  c.padding = pick(3) * step;
  c.offset = step == 8 ? 0 : pick(3);
  c.c_type = c.type == Type::bf16 && pick(2) ? Type::bf16 : Type::f32;
  c.c_padding = pick(2) * (pick(2) ? 4 : 3);
  c.bias = pick(2);
  c.added = Added(pick(3));
  c.workspace = pick(2);
  c.factor = pick(2) ? 1.0f : -0.3f;
  return c;
}

// Matrix on the device. The gaps between, before and after its rows are NaN.
class Matrix {
 public:
  Matrix(Type type, int64_t rows, int64_t columns, int64_t stride, int64_t offset) : offset_(offset) {
    view_ = {nullptr, type, rows, columns, stride};
    bytes_ = size_t((guard + offset + rows * stride + guard) * bytes_of(type));
    bytes_ = (bytes_ + 15) / 16 * 16;
    CUDA_CHECK(cudaMalloc(&data_, bytes_));
    CUDA_CHECK(cudaMemset(data_, 0xFF, bytes_));
    view_.data = static_cast<char*>(data_) + (guard + offset) * bytes_of(type);
  }
  ~Matrix() { cudaFree(data_); }
  Matrix(const Matrix&) = delete;

  const Tensor& view() const { return view_; }
  float at(int64_t row, int64_t column) const { return values_[size_t(row * view_.columns + column)]; }

  void fill(uint32_t stream) {
    values_.resize(size_t(view_.rows * view_.columns));
    for (size_t i = 0; i < values_.size(); i++) values_[i] = random_value(stream, uint32_t(i));
    std::vector<unsigned char> bytes(bytes_, 0xFF);
    for (int64_t i = 0; i < view_.rows * view_.columns; i++) {
      const float value = values_[size_t(i)];
      const uint16_t half = bf16_bits(value);
      if (view_.type == Type::f32) std::memcpy(&bytes[place(i)], &value, 4);
      else std::memcpy(&bytes[place(i)], &half, 2);
    }
    CUDA_CHECK(cudaMemcpy(data_, bytes.data(), bytes_, cudaMemcpyHostToDevice));
  }

  // Returns the bits of the elements; `clean` receives whether all other memory is unchanged.
  std::vector<uint32_t> read(bool* clean) const {
    std::vector<unsigned char> bytes(bytes_);
    CUDA_CHECK(cudaMemcpy(bytes.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    std::vector<uint32_t> bits;
    const size_t size = size_t(bytes_of(view_.type));
    for (int64_t i = 0; i < view_.rows * view_.columns; i++) {
      uint32_t word = 0;
      std::memcpy(&word, &bytes[place(i)], size);
      std::memset(&bytes[place(i)], 0xFF, size);
      bits.push_back(word);
    }
    *clean = true;
    for (const unsigned char byte : bytes) *clean = *clean && byte == 0xFF;
    return bits;
  }

  static float value(Type type, uint32_t bits) {
    if (type == Type::bf16) bits <<= 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }

 private:
  static constexpr int64_t guard = 64;

  size_t place(int64_t i) const {
    return size_t((guard + offset_ + i / view_.columns * view_.stride + i % view_.columns) * bytes_of(view_.type));
  }

  int64_t offset_;
  Tensor view_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
  std::vector<float> values_;
};

using Multiply = std::function<void(const Matmul&, void* workspace, size_t bytes)>;

// The product of a case and its matrices.
struct Run {
  explicit Run(const Case& c)
      : rows(c.of_rows ? c.of_rows : c.m),
        a(c.type, c.transpose_a ? c.k : rows, c.transpose_a ? rows : c.k, (c.transpose_a ? rows : c.k) + c.padding,
          c.offset),
        b(c.type, c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, (c.transpose_b ? c.k : c.n) + c.padding,
          c.offset),
        bias(c.type, 1, c.n, c.n, c.offset),
        other(c.c_type, rows, c.n, c.n + c.c_padding + 1 - c.c_padding % 2, 0),
        out(c.c_type, c.m, c.n, c.n + c.c_padding, 0) {
    a.fill(1), b.fill(2), bias.fill(3), other.fill(4);
    if (c.added == Added::same) out.fill(5);
    product.a = c.of_rows ? a.view().row_range(c.first_row, c.m) : a.view();
    product.b = b.view();
    product.transpose_a = c.transpose_a;
    product.transpose_b = c.transpose_b;
    if (c.bias) product.bias = bias.view();
    if (c.added == Added::same) product.added = out.view();
    if (c.added == Added::other) product.added = c.of_rows ? other.view().row_range(c.first_row, c.m) : other.view();
    product.c = out.view();
    product.factor = c.factor;
  }

  int64_t rows;
  Matrix a, b, bias, other, out;
  Matmul product;
};

inline std::vector<uint32_t> run(const Case& c, const Multiply& multiply = nullptr, Run* kept = nullptr) {
  Run own(c);
  Run& r = kept ? *kept : own;
  constexpr size_t workspace_bytes = 1 << 20;
  void* workspace = nullptr;
  if (c.workspace) CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));
  if (multiply) multiply(r.product, workspace, c.workspace ? workspace_bytes : 0);
  else cuda::matmul(r.product, workspace, c.workspace ? workspace_bytes : 0, nullptr, c.tile);
  CUDA_CHECK(cudaDeviceSynchronize());
  if (workspace) CUDA_CHECK(cudaFree(workspace));
  bool clean;
  std::vector<uint32_t> bits = r.out.read(&clean);
  CHECK(clean, "m %d n %d k %d: written outside of C", int(c.m), int(c.n), int(c.k));
  return bits;
}

// Products of two bf16 are exact in fp32, and a tensor core adds 16 of them to a sum with at most four roundings or
// truncations at the scale of the largest; in fp32 each multiply-add rounds once. Every rounding is within 2^-23 of Σ
// |a b| + |bias| + |added|.
inline void check_case(const Case& c, const Multiply& multiply = nullptr) {
  Run r(c);
  const std::vector<uint32_t> bits = run(c, multiply, &r);
  const double roundings = (c.type == Type::f32 ? double(c.k) : 4 * std::ceil(double(c.k) / 16)) + 12;
  int wrong = 0;
  double worst = 0;
  for (int64_t i = 0; i < c.m; i++) {
    for (int64_t j = 0; j < c.n; j++) {
      double sum = 0, size = 0;
      const auto add = [&](double term) { sum += term, size += std::abs(term); };
      for (int64_t k = 0; k < c.k; k++) {
        add(double(c.factor) * double(c.transpose_a ? r.a.at(k, i) : r.a.at(i, k)) * double(c.transpose_b ? r.b.at(j, k) : r.b.at(k, j)));
      }
      if (c.bias) add(r.bias.at(0, j));
      if (c.added == Added::same) add(r.out.at(i, j));
      if (c.added == Added::other) add(r.other.at(i, j));
      double bound = roundings * size * std::ldexp(1.0, -23);
      if (c.c_type == Type::bf16) bound += (std::abs(sum) + bound) * std::ldexp(1.0, -8);
      const double error = std::abs(double(Matrix::value(c.c_type, bits[size_t(i * c.n + j)])) - sum);
      if (!(error <= bound)) wrong++, worst = error > worst ? error : worst;
    }
  }
  CHECK(wrong == 0,
        "%d wrong by up to %g: m %d n %d k %d transposes %d %d types %d %d padding %d %d offset %d bias %d added %d tile %d",
        wrong, worst, int(c.m), int(c.n), int(c.k), c.transpose_a, c.transpose_b, int(c.type), int(c.c_type), int(c.padding),
        int(c.c_padding), int(c.offset), c.bias, int(c.added), int(c.tile));
}

}  // namespace gigpo::test
