// core/cpu/vector.h against double precision, on every instruction set of this machine. Usage: vector_test [stride =
// 61]. exp and log are tested at every stride-th float of their range; 1 tests all.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/random.h"
#include "test/core/check.h"
#include "test/core/each_isa.h"
#include "test/core/vector_kernel.h"

using namespace gigpo;
using namespace gigpo::cpu;

static float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

// value - exact| in units in the last place of a float near `exact`.
static double ulps(float value, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// Largest error over the floats from bits `first` to `last`, and where it occurs.
template <class Exact>
static std::pair<double, float> worst(void (*function)(const float*, float*, int64_t), Exact exact, uint32_t first,
                                      uint32_t last, uint32_t stride) {
  std::pair<double, float> result{0, 0};
  std::vector<float> x, y;
  const auto flush = [&] {
    y.resize(x.size());
    function(x.data(), y.data(), int64_t(x.size()));
    for (size_t i = 0; i < x.size(); i++)
      if (const double error = ulps(y[i], exact(double(x[i]))); !(error <= result.first)) result = {error, x[i]};
    x.clear();
  };
  for (uint64_t bits = first; bits <= last; bits += stride) {
    x.push_back(from_bits(uint32_t(bits)));
    if (x.size() == 4096) flush();
  }
  x.push_back(from_bits(last));
  flush();
  return result;
}

static void test_exp(const char* name, const VectorKernel& kernel, uint32_t stride) {
  const auto exact = [](double x) { return std::exp(x); };
  const auto above = worst(kernel.exp, exact, bits_of(0.0f), bits_of(88.72283f), stride);
  const auto below = worst(kernel.exp, exact, bits_of(-0.0f), bits_of(-87.0f), stride);
  std::printf("%s: exp within %.3f ulp (at %g), ", name, std::max(above.first, below.first),
              above.first > below.first ? above.second : below.second);
  CHECK(above.first < 2, "%s: %g ulp at %g", name, above.first, above.second);
  CHECK(below.first < 2, "%s: %g ulp at %g", name, below.first, below.second);

  const float x[] = {0.0f, -0.0f, 88.73f, 1000.0f, INFINITY, -87.01f, -1000.0f, -3e38f, -INFINITY, NAN};
  float y[std::size(x)];
  kernel.exp(x, y, std::size(x));
  for (const int i : {0, 1}) CHECK(y[i] == 1, "%s", name);
  for (const int i : {2, 3, 4}) CHECK(y[i] == INFINITY, "%s: exp(%g) = %g", name, x[i], y[i]);
  for (const int i : {5, 6, 7, 8}) CHECK(y[i] == 0, "%s: exp(%g) = %g", name, x[i], y[i]);
  CHECK(std::isnan(y[9]), "%s", name);
}

static void test_log(const char* name, const VectorKernel& kernel, uint32_t stride) {
  const auto exact = [](double x) { return std::log(x); };
  const auto [error, at] = worst(kernel.log, exact, 0x00800000, 0x7f7fffff, stride);
  const auto [error_at_one, near] = worst(kernel.log, exact, bits_of(0.99f), bits_of(1.01f), 1);
  std::printf("log within %.3f ulp (at %g)\n", std::max(error, error_at_one), error > error_at_one ? at : near);
  CHECK(error < 2 && error_at_one < 2, "%s: %g at %g, %g at %g", name, error, at, error_at_one, near);
  const float one = 1;
  float zero;
  kernel.log(&one, &zero, 1);
  CHECK(bits_of(zero) == 0, "%s: log 1 is 0", name);
}

// Random numbers of sampling, of which the smallest decide.
static void test_log_one_minus(const char* name, const VectorKernel& kernel, uint32_t stride) {
  const auto exact = [](double v) { return std::log1p(-v); };
  const auto [error, at] = worst(kernel.log_one_minus, exact, bits_of(0x1p-33f), bits_of(1 - 0x1p-24f), stride);
  CHECK(error < 2, "%s: %g ulp at %g", name, error, at);
  for (const uint32_t word : {0u, 1u, 42u, 43u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFF7Fu, 0xFFFFFF80u, 0xFFFFFFFFu}) {
    const float v = fine_uniform(word);
    CHECK(v > 0 && v < 1 && std::abs(double(v) - (word + 0.5) * 0x1p-32) <= 0x1p-24 * double(v), "%u: %g", word, double(v));
  }
}

static void test_sqrt(const char* name, const VectorKernel& kernel) {
  std::vector<float> x{0, 1e-42f, 1e-38f, INFINITY}, y(1000);
  while (x.size() < y.size()) x.push_back(std::exp(float(x.size()) * 0.17f - 85));
  kernel.sqrt(x.data(), y.data(), int64_t(x.size()));
  for (size_t i = 0; i < x.size(); i++) CHECK(y[i] == std::sqrt(x[i]), "%s: the root of %g", name, double(x[i]));
}

static void test_lanes(const char* name, const VectorKernel& kernel) {
  const int64_t lanes = kernel.lanes;
  std::vector<float> x(size_t(lanes * lanes)), y(x.size());
  for (int64_t i = 0; i < lanes * lanes; i++) x[size_t(i)] = std::sin(float(i + 1)) * 100;
  kernel.transpose(x.data(), y.data());
  for (int64_t i = 0; i < lanes; i++)
    for (int64_t j = 0; j < lanes; j++)
      CHECK(y[size_t(i * lanes + j)] == x[size_t(j * lanes + i)], "%s: transpose %ld %ld", name, long(i), long(j));

  // Order that vector.h documents: the upper half is added to the lower, until one lane is left.
  std::vector<float> folded(x.begin(), x.begin() + lanes);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; i++) folded[size_t(i)] += folded[size_t(i + half)];
  CHECK(kernel.horizontal_sum(x.data()) == folded[0], "%s", name);

  for (int64_t largest = 0; largest < lanes; largest++) {
    std::vector<float> v(size_t(lanes), -2.0f);
    v[size_t(largest)] = -1;
    CHECK(kernel.horizontal_max(v.data()) == -1, "%s: the maximum in lane %ld", name, long(largest));
  }

  std::vector<float> greater(size_t(lanes), 0), less(size_t(lanes), 0);
  kernel.max(x.data(), x.data() + lanes, greater.data());
  kernel.min(x.data(), x.data() + lanes, less.data());
  for (int64_t i = 0; i < lanes; i++) {
    const float a = x[size_t(i)], b = x[size_t(i + lanes)];
    CHECK(greater[size_t(i)] == std::max(a, b) && less[size_t(i)] == std::min(a, b), "%s", name);
  }

  // Heap blocks of the exact size, so that a sanitizer detects accesses beyond them.
  for (int64_t count = 0; count <= lanes; count++) {
    const std::vector<float> from(x.begin(), x.begin() + count);
    std::vector<float> to(static_cast<size_t>(count)), whole(size_t(lanes), -1);
    kernel.copy(from.data(), to.data(), count);
    CHECK(to == from, "%s: %ld floats", name, long(count));
    kernel.load_some(from.data(), whole.data(), count);
    for (int64_t i = 0; i < lanes; i++)
      CHECK(whole[size_t(i)] == (i < count ? x[size_t(i)] : 0), "%s: %ld floats", name, long(count));
  }
}

int main(int argc, char** argv) {
  const uint32_t stride = argc > 1 ? uint32_t(std::atoi(argv[1])) : 61;
  test::on_each_isa([&](cpu::Isa one) {
    test_lanes(isa_name(one), vector_kernel(one));
    test_exp(isa_name(one), vector_kernel(one), stride);
    test_log(isa_name(one), vector_kernel(one), stride);
    test_log_one_minus(isa_name(one), vector_kernel(one), stride);
    test_sqrt(isa_name(one), vector_kernel(one));
  });
  return test::report();
}
