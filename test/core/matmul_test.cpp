// Matrix product on the CPU against its definition (bit for bit) and against double precision, on every instruction set
// of this machine; and the thread pool.
#include "core/cpu/matmul.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "core/cpu/isa.h"
#include "core/device.h"
#include "core/error.h"
#include "core/random.h"
#include "test/core/check.h"
#include "test/core/each_isa.h"

using namespace gigpo;
using namespace gigpo::cpu;

// Matrix with row distance `ld`. The gaps are NaN, so that reading them would show.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t ld, uint32_t stream)
      : ld(ld), data(size_t(rows == 0 ? 0 : (rows - 1) * ld + columns), NAN) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++)
        data[i * ld + j] = 2 * open_uniform(philox({7, 0}, uint32_t(i), uint32_t(j), stream, 0).word[0]) - 1;
  }
  int64_t ld;
  std::vector<float> data;
};

// One product in all storage orders.
struct Problem {
  Problem(int64_t m, int64_t n, int64_t k, int64_t gap)
      : m(m), n(n), k(k), a(m, k, k + gap, 0), a_transposed(k, m, m + gap, 0), b(k, n, n + gap, 1),
        b_transposed(n, k, k + gap, 1), c(m, n, n + gap, 2), bias(1, n, n, 3) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t p = 0; p < k; p++) a_transposed.data[p * a_transposed.ld + i] = a.data[i * a.ld + p];
    for (int64_t j = 0; j < n; j++)
      for (int64_t p = 0; p < k; p++) b_transposed.data[j * b_transposed.ld + p] = b.data[p * b.ld + j];
  }
  MatmulArguments arguments(bool ta, bool tb, bool accumulate, bool with_bias, float* out) const {
    const Matrix &left = ta ? a_transposed : a, &right = tb ? b_transposed : b;
    const float* const added = with_bias ? bias.data.data() : nullptr;
    return {m, n, k, left.data.data(), left.ld, ta, right.data.data(), right.ld, tb, out, c.ld, accumulate, added};
  }
  int64_t m, n, k;
  Matrix a, a_transposed, b, b_transposed, c, bias;
};

// x·y + z as computed by the instruction set. This file is compiled for the baseline CPU; `volatile` keeps the two
// operations separate on the portable one.
static float multiply_add(float x, float y, float z) {
#if defined(__aarch64__)
  return std::fma(x, y, z);
#else
  if (isa() != Isa::portable) return std::fma(x, y, z);
  volatile float product = x * y;
  return product + z;
#endif
}

// Definition in matmul.h.
static std::vector<float> defined(const Problem& x, bool accumulate, bool with_bias) {
  std::vector<float> c = x.c.data;
  for (int64_t i = 0; i < x.m; i++)
    for (int64_t j = 0; j < x.n; j++) {
      float result = 0;
      for (int64_t block = 0; block == 0 || block < x.k; block += 512) {
        float sum = 0;
        for (int64_t p = block; p < std::min(block + 512, x.k); p++)
          sum = multiply_add(x.a.data[i * x.a.ld + p], x.b.data[p * x.b.ld + j], sum);
        result = block > 0 ? result + sum : accumulate ? x.c.data[i * x.c.ld + j] + sum : sum;
        if (block == 0 && with_bias) result += x.bias.data[j];
      }
      c[i * x.c.ld + j] = result;
    }
  return c;
}

static void check_precision(const Problem& x, const std::vector<float>& c) {
  double worst = 0;  // error relative to the sum of the magnitudes of the products, in units of float rounding
  for (int64_t i = 0; i < x.m; i++)
    for (int64_t j = 0; j < x.n; j++) {
      double exact = 0, magnitude = 1e-30;
      for (int64_t p = 0; p < x.k; p++) {
        const double product = double(x.a.data[i * x.a.ld + p]) * x.b.data[p * x.b.ld + j];
        exact += product, magnitude += std::abs(product);
      }
      worst = std::max(worst, std::abs(c[i * x.c.ld + j] - exact) / magnitude * 0x1p24);
    }
  CHECK(worst < 16, "%s m=%ld n=%ld k=%ld: error %g", isa_name(isa()), long(x.m), long(x.n), long(x.k), worst);
}

// Also checks that the gaps between the rows of C are unchanged: their NaNs must keep their bits.
static bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

static void test_product(ThreadPool& pool, int64_t m, int64_t n, int64_t k, int64_t gap) {
  if (test::is_too_large(m, n, k)) return;
  const Problem x(m, n, k, gap);
  PackedWeight weight;
  // A weight is packed without gaps.
  const Problem tight(1, n, k, 0);
  weight.pack(pool, tight.b_transposed.data.data(), n, k);
  for (const bool accumulate : {false, true})
    for (const bool with_bias : {false, true}) {
      const std::vector<float> expected = defined(x, accumulate, with_bias);
      const auto check = [&](const char* which, const std::vector<float>& c, bool ta, bool tb) {
        CHECK(same_bits(c, expected), "%s %s m=%ld n=%ld k=%ld gap=%ld ta=%d tb=%d accumulate=%d bias=%d",
              isa_name(isa()), which, long(m), long(n), long(k), long(gap), ta, tb, accumulate, with_bias);
      };
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          std::vector<float> c = x.c.data;
          matmul(pool, x.arguments(ta, tb, accumulate, with_bias, c.data()));
          check("matmul", c, ta, tb);
          c = x.c.data;
          matmul_single(x.arguments(ta, tb, accumulate, with_bias, c.data()));
          check("matmul_single", c, ta, tb);
        }
      std::vector<float> c = x.c.data;
      matmul_packed(pool, m, x.a.data.data(), x.a.ld, weight, c.data(), x.c.ld,
                    with_bias ? x.bias.data.data() : nullptr, accumulate);
      check("matmul_packed", c, false, true);
      if (!accumulate && !with_bias) check_precision(x, c);
    }
}

static void test_products(ThreadPool& pool) {
  const int64_t edges[] = {1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 29, 31, 32, 33, 65};
  for (const int64_t m : edges)
    for (const int64_t n : edges) test_product(pool, m, n, 1 + (m * 37 + n * 11) % 40, (m + n) % 4);
  for (const int64_t k : {1, 2, 15, 16, 17, 31, 100, 255, 256, 257, 511, 513, 1023, 1024, 1025, 2100})
    test_product(pool, 19, 37, k, k % 3);
  for (const int64_t m : {1, 4, 14, 15, 28, 29, 64, 113, 250, 700}) test_product(pool, m, 130, 70, 5);
  for (const int64_t n : {1, 63, 64, 127, 500, 2049}) test_product(pool, 30, n, 40, 0);
  for (const int64_t m : {113, 700, 769}) test_product(pool, m, 90, 1100, 3);  // as many panels as threads, or twice as many
  test_product(pool, 40, 1100, 1030, 2);  // exceeds the part of B that is packed at a time
  test_product(pool, 3, 5, 0, 1);         // an empty sum is zero, or C, and the bias
}

// A row has the same result alone and among others, with any number of threads.
static void test_batch_invariance() {
  const Problem x = test::is_too_large(301, 203, 700) ? Problem(45, 37, 700, 0) : Problem(301, 203, 700, 0);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    results.push_back(x.c.data);
    matmul(pool, x.arguments(false, true, false, true, results.back().data()));
    CHECK(same_bits(results.back(), results.front()), "%s with %d threads", isa_name(isa()), threads);
  }
  ThreadPool pool(2);
  PackedWeight weight;
  weight.pack(pool, x.b_transposed.data.data(), x.n, x.k);
  for (const int64_t batch : {1, 2, 5, 64, 300}) {
    std::vector<float> c = x.c.data;
    for (int64_t row = 0; row < x.m; row += batch)
      matmul_packed(pool, std::min(batch, x.m - row), x.a.data.data() + row * x.a.ld, x.a.ld, weight,
                    c.data() + row * x.c.ld, x.c.ld, x.bias.data.data(), false);
    CHECK(same_bits(c, results.front()), "%s in batches of %ld", isa_name(isa()), long(batch));
  }
}

// A sum over k in pieces of a few blocks, as for the gradient of an embedding, has the same bits as in one call.
static void test_sums_in_pieces() {
  constexpr int64_t unit = DeviceTraits::head_unit;
  const Problem x(70, 90, 3 * unit + 100, 0);
  ThreadPool pool(2);
  for (const bool accumulate : {false, true}) {
    std::vector<float> whole = x.c.data;
    matmul(pool, x.arguments(true, false, accumulate, false, whole.data()));
    for (const int64_t rows : {unit, 2 * unit}) {
      std::vector<float> c = x.c.data;
      for (int64_t first = 0; first < x.k; first += rows) {
        MatmulArguments piece = x.arguments(true, false, accumulate || first > 0, false, c.data());
        piece.k = std::min(rows, x.k - first), piece.a += first * piece.lda, piece.b += first * piece.ldb;
        matmul(pool, piece);
      }
      CHECK(same_bits(c, whole), "%s: sums in pieces of %ld rows", isa_name(isa()), long(rows));
    }
  }
}

static void test_rows_of_the_head() {
  for (const int64_t vocabulary : {1, 2, 300, 2048, 2049, 32000, 151936, 10000000}) {
    const int64_t rows = cpu_traits(Type::f32).head_rows(vocabulary);
    CHECK(rows >= 512 && rows % 512 == 0, "%ld of a vocabulary of %ld", long(rows), long(vocabulary));
  }
  CHECK(cpu_traits(Type::f32).head_rows(151936) == 512 && cpu_traits(Type::f32).head_rows(512) == 2048);
}

static void test_same_bits_on_every_fma() {
  const std::initializer_list<Isa> alike = {Isa::avx2, Isa::avx512, Isa::portable, Isa::neon};
  const Problem x(45, 77, 600, 0);
  std::vector<std::vector<float>> results;
  for (const Isa one : alike) {
    const bool fuses = isa_supported(Isa::neon) || one != Isa::portable;  // on x86, the portable kernels round products
    if (!fuses || !isa_supported(one)) continue;
    set_isa(one);
    results.push_back(x.c.data);
    matmul_single(x.arguments(false, true, false, false, results.back().data()));
    CHECK(same_bits(results.front(), results.back()), "%s", isa_name(one));
  }
  if (results.size() < 2) std::printf("skipped: comparison of instruction sets, of which this machine has one with fused multiply-adds\n");
}

static void test_packed_weight_is_reused() {
  ThreadPool pool(2);
  const Problem large(4, 100, 90, 0), small(4, 50, 60, 0);
  PackedWeight weight;
  CHECK(weight.bytes() == 0);
  weight.pack(pool, large.b_transposed.data.data(), 100, 90);
  const float* const storage = weight.data();
  CHECK(reinterpret_cast<uintptr_t>(storage) % 64 == 0);
  CHECK(weight.bytes() >= 100 * 90 * sizeof(float));
  weight.pack(pool, small.b_transposed.data.data(), 50, 60);
  CHECK(weight.data() == storage && weight.n() == 50 && weight.k() == 60);
  std::vector<float> c = small.c.data;
  matmul_packed(pool, 4, small.a.data.data(), small.a.ld, weight, c.data(), small.c.ld, nullptr, false);
  CHECK(same_bits(c, defined(small, false, false)));
}

static void test_thread_pool() {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    bool once = true;
    for (const int64_t count : {0, 1, 2, 3, 10, 1000})
      for (int repeat = 0; repeat < 200; repeat++) {
        std::vector<int> calls(size_t(count), 0);
        pool.parallel_for(count, [&](int64_t i) { calls[size_t(i)]++; });
        for (const int n : calls) once = once && n == 1;
      }
    CHECK(once, "each index exactly once, with %d threads", threads);

    std::vector<int> sums(6, 0);
    pool.parallel_for(6, [&](int64_t i) { pool.parallel_for(5, [&](int64_t j) { sums[size_t(i)] += int(j); }); });
    CHECK(sums == std::vector<int>(6, 10), "a nested loop runs completely");

    bool thrown = false;
    try {
      pool.parallel_for(100, [](int64_t i) {
        if (i % 10 == 3) throw std::runtime_error("three");
      });
    } catch (const std::runtime_error& error) {
      thrown = std::string_view(error.what()) == "three";
    }
    CHECK(thrown);
    std::atomic<int> after = 0;
    pool.parallel_for(50, [&](int64_t) { after++; });
    CHECK(after == 50, "a loop after one that threw");

    // Two threads share the pool: the second one works alone.
    std::atomic<int64_t> total = 0;
    std::vector<std::thread> callers;
    for (int c = 0; c < 2; c++)
      callers.emplace_back([&] {
        for (int repeat = 0; repeat < 500; repeat++) pool.parallel_for(7, [&](int64_t i) { total += i; });
      });
    for (std::thread& caller : callers) caller.join();
    CHECK(total == 2 * 500 * 21);
  }
  CHECK_THROWS(ThreadPool(0), "BAD_ARGUMENT");
}

int main() {
  test_thread_pool();
  ThreadPool pool(3);
  test::on_each_isa([&](cpu::Isa) {
    test_products(pool);
    test_batch_invariance();
    test_sums_in_pieces();
    test_packed_weight_is_reused();
  });
  test_same_bits_on_every_fma();
  test_rows_of_the_head();
  return test::report();
}
