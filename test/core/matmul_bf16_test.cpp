// bf16 products on the CPU against double precision and, on every instruction set but avx512_bf16, bit for bit against their definition.
// Results do not depend on storage order, batch and number of threads. As amx_test, with Intel's AMX in software.
#include "core/cpu/matmul_bf16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/bf16.h"
#include "core/cpu/kernels_bf16.h"
#include "core/error.h"
#include "test/core/bf16_sums.h"
#include "test/core/check.h"
#include "test/core/each_isa.h"

using namespace gigpo;
using namespace gigpo::cpu;

namespace {

constexpr uint16_t nan_bits = 0x7FC1;

// Matrix stored as f32 or bf16, of numbers that bf16 can represent, with `gap` elements between rows. The gaps are NaN,
// so that reading them would show.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t gap, uint32_t stream, bool transposed = false)
      : rows(transposed ? columns : rows), columns(transposed ? rows : columns), ld(this->columns + gap),
        halves(size_t(std::max<int64_t>(0, (this->rows - 1) * ld + this->columns)), nan_bits) {
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) {
        const float value = 2 * open_uniform(philox({7, 0}, uint32_t(i), uint32_t(j), stream, 0).word[0]) - 1;
        halves[transposed ? j * ld + i : i * ld + j] = to_bf16(value);
      }
    }
    for (const uint16_t half : halves) floats.push_back(from_bf16(half));
  }
  Tensor tensor(Type type) {
    return {type == Type::f32 ? static_cast<void*>(floats.data()) : halves.data(), type, rows, columns, ld};
  }
  float at(int64_t i, int64_t j) const { return floats[i * ld + j]; }
  bool operator==(const Matrix& other) const {
    return halves == other.halves && std::memcmp(floats.data(), other.floats.data(), floats.size() * sizeof(float)) == 0;
  }
  int64_t rows, columns, ld;
  std::vector<uint16_t> halves;
  std::vector<float> floats;
};

struct Problem {
  Problem(int64_t m, int64_t n, int64_t k, int64_t gap)
      : k(k), a{{m, k, gap, 0}, {m, k, gap, 0, true}}, b{{k, n, gap, 1}, {k, n, gap, 1, true}}, c(m, n, gap, 2), bias(1, n, 0, 3) {}
  Bf16Matmul product(bool ta, bool tb, Tensor out, bool accumulate, bool with_bias) {
    return {a[ta].tensor(Type::bf16), ta, b[tb].tensor(Type::bf16), tb, out, accumulate, with_bias ? bias.tensor(Type::bf16) : Tensor{}};
  }
  int64_t k;
  Matrix a[2], b[2], c, bias;  // original and transposed
};

// Definition in matmul_bf16.h. |error| of `c` relative to the exact sum, in units of float rounding of the magnitudes.
double check_definition(const Problem& x, const Matrix& c, bool accumulate, bool with_bias) {
  double worst = 0;
  for (int64_t i = 0; i < x.c.rows; i++) {
    for (int64_t j = 0; j < x.c.columns; j++) {
      const float first = accumulate ? x.c.at(i, j) : 0, last = with_bias ? x.bias.at(0, j) : 0;
      double exact = double(first) + last, magnitude = std::abs(first) + std::abs(last) + 1e-30;
      float defined = first;
      bool is_defined = false;
      for (int64_t block = 0; block == 0 || block < x.k; block += bf16_k_block) {
        const int64_t depth = std::min(bf16_k_block, x.k - block);
        const auto a = [&](int64_t p) { return x.a[0].at(i, block + p); };
        const auto b = [&](int64_t p) { return x.b[0].at(block + p, j); };
        for (int64_t p = 0; p < depth; p++) exact += a(p) * b(p), magnitude += std::abs(a(p) * b(p));
        const std::optional<float> sum = test::sum_of_products(isa(), depth, a, b);
        is_defined = sum.has_value();
        defined = block > 0 || accumulate ? defined + sum.value_or(0) : sum.value_or(0);
        if (block == 0 && with_bias) defined += last;
      }
      if (is_defined) CHECK(c.at(i, j) == defined, "%s: %g, not %g", isa_name(isa()), c.at(i, j), defined);
      worst = std::max(worst, std::abs(c.at(i, j) - exact) / magnitude * 0x1p24);
    }
  }
  return worst;
}

void test_product(ThreadPool& pool, int64_t m, int64_t n, int64_t k, int64_t gap) {
  if (test::is_too_large(m, n, k)) return;
  Problem x(m, n, k, gap);
  for (const bool accumulate : {false, true}) {
    for (const bool with_bias : {false, true}) {
      const auto run = [&](bool ta, bool tb) {
        Matrix c = x.c;
        matmul(pool, x.product(ta, tb, c.tensor(Type::f32), accumulate, with_bias));
        matmul(pool, x.product(ta, tb, c.tensor(Type::bf16), accumulate, with_bias));
        return c;
      };
      const Matrix c = run(false, false);
      const double error = check_definition(x, c, accumulate, with_bias);
      CHECK(error < 16, "%s m=%ld n=%ld k=%ld: error %g", isa_name(isa()), long(m), long(n), long(k), error);
      for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) CHECK(c.halves[i * c.ld + j] == to_bf16(c.at(i, j)), "rounded once");
      }
      for (const auto& [ta, tb] : {std::pair{true, false}, {false, true}, {true, true}}) {
        CHECK(run(ta, tb) == c, "%s m=%ld n=%ld k=%ld gap=%ld ta=%d tb=%d", isa_name(isa()), long(m), long(n), long(k), long(gap), ta, tb);
      }
      Matrix tight(k, n, 0, 1, true), packed_c = x.c;
      if (!can_pack(tight.tensor(Type::bf16))) continue;
      PackedWeight weight;
      pack(pool, tight.tensor(Type::bf16), weight);
      matmul_packed(pool, x.product(false, true, packed_c.tensor(Type::f32), accumulate, with_bias), weight);
      matmul_packed(pool, x.product(false, true, packed_c.tensor(Type::bf16), accumulate, with_bias), weight);
      CHECK(packed_c == c, "%s packed m=%ld n=%ld k=%ld", isa_name(isa()), long(m), long(n), long(k));
    }
  }
}

void test_products(ThreadPool& pool) {
  const int64_t edges[] = {1, 2, 3, 7, 8, 14, 15, 16, 17, 31, 32, 33, 65};
  for (const int64_t m : edges) {
    for (const int64_t n : edges) test_product(pool, m, n, 1 + (m * 37 + n * 11) % 40, (m + n) % 4);
  }
  for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{100}, bf16_k_block - 1, bf16_k_block, bf16_k_block + 1, 2 * bf16_k_block + 10}) {
    test_product(pool, 19, 37, k, k % 3);
  }
  for (const int64_t m : {4, 28, 29, 64, 113, 700}) test_product(pool, m, 130, 70, 6);
  for (const int64_t n : {63, 64, 127, 500, 2049}) test_product(pool, 30, n, 40, 0);
  test_product(pool, 2, 530, 4100, 2);  // exceeds the part of B that is packed at a time
  test_product(pool, 910, 3, 8192, 0);  // exceeds that of A
  test_product(pool, 1030, 3, bf16_k_block + 10, 2);  // exceeds the rows with fp32 sums at a time
}

void test_invariance() {
  Problem x = test::is_too_large(301, 203, 700) ? Problem(45, 37, 700, 0) : Problem(301, 203, 700, 0);
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    results.push_back(x.c);
    matmul(pool, x.product(false, true, results.back().tensor(Type::bf16), false, true));
    CHECK(results.back() == results.front(), "%s with %d threads", isa_name(isa()), threads);
  }
  ThreadPool pool(2);
  PackedWeight weight;
  pack(pool, x.b[1].tensor(Type::bf16), weight);
  for (const int64_t batch : {1, 2, 5, 64, 300}) {
    Matrix c = x.c;
    for (int64_t row = 0; row < x.c.rows; row += batch) {
      Bf16Matmul product = x.product(false, true, c.tensor(Type::bf16), false, true);
      const int64_t count = std::min(batch, x.c.rows - row);
      product.a = product.a.row_range(row, count), product.c = product.c.row_range(row, count);
      matmul_packed(pool, product, weight);
    }
    CHECK(c == results.front(), "%s in batches of %ld", isa_name(isa()), long(batch));
  }
}

// All bf16 numbers and the floats around the midpoint to the next; and partial vectors.
void test_conversions() {
  const Bf16Kernels& kernels = bf16_kernels(isa());
  for (uint32_t upper = 0; upper < 0x10000; upper++) {
    const uint32_t words[] = {upper << 16, upper << 16 | 0x7FFF, upper << 16 | 0x8000, upper << 16 | 0x8001, upper << 16 | 0xFFFF};
    float values[5];
    std::memcpy(values, words, sizeof values);
    uint16_t rounded[6] = {0, 0, 0, 0, 0, nan_bits};
    kernels.round(5, values, rounded);
    for (int i = 0; i < 5; i++) CHECK(rounded[i] == to_bf16(values[i]), "%s: %08x", isa_name(isa()), words[i]);
    CHECK(rounded[5] == nan_bits);
  }
  std::vector<uint16_t> all(0x10000);
  for (size_t i = 0; i < all.size(); i++) all[i] = uint16_t(i);
  for (const int64_t count : {0, 1, 15, 16, 17, 0x10000}) {
    std::vector<float> wide(all.size() + 1, 7);
    std::vector<uint16_t> back(all.size() + 1, nan_bits);
    kernels.widen(count, all.data(), wide.data());
    kernels.round(count, wide.data(), back.data());
    bool same = wide[count] == 7 && back[count] == nan_bits;
    for (int64_t i = 0; i < count; i++) {
      const float value = from_bf16(all[i]);
      same = same && std::memcmp(&wide[i], &value, sizeof value) == 0 && back[i] == to_bf16(value);
    }
    CHECK(same, "%s: %d numbers", isa_name(isa()), int(count));
  }
}

}  // namespace

int main() {
  ThreadPool pool(3);
  test::on_each_isa([&](cpu::Isa) {
    test_conversions();
    test_products(pool);
    test_invariance();
  });
  return test::report();
}
