// Caching and skipped work of the CPU device.
#include <vector>

#include "core/device.h"
#include "test/core/check.h"
#include "test/core/engine_checks.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers allocate memory of their own
#define GIGPO_COUNTS_MEMORY 1
#include <malloc.h>
#endif

using namespace gigpo;

// A packed weight is packed again only if it was reported as written; unreported changes have no effect. (Device memory
// is host memory here.)
static void test_only_written_weights_are_packed_again() {
  const auto device = make_cpu_device(2);
  constexpr int64_t in = 40, out = 24;
  std::vector<float> weights(2 * out * in, 1), x(in, 1), y(out);
  const Tensor flat{weights.data(), Type::f32, 1, 2 * out * in, 2 * out * in};
  const auto product = [&](int64_t which) {
    device->linear({x.data(), Type::f32, 1, in, in}, flat.matrix(which * out * in, out, in), {}, {}, {y.data(), Type::f32, 1, out, out});
    return y[out - 1];
  };
  CHECK(product(0) == in && product(1) == in);
  const auto change = [&](float value, int64_t offset, int64_t count) {
    std::fill(weights.begin(), weights.end(), value);
    device->weights_changed(flat.matrix(offset, 1, count));
  };
  change(2, out * in, out * in);
  CHECK(product(0) == in && product(1) == 2 * in, "after writing the second weight: %g %g", double(product(0)), double(product(1)));
  change(3, out * in - 1, 1);
  CHECK(product(0) == 3 * in && product(1) == 2 * in, "after writing the last number of the first: %g %g", double(product(0)), double(product(1)));
  change(4, out * in - 1, 2);
  CHECK(product(0) == 4 * in && product(1) == 4 * in, "both: %g %g", double(product(0)), double(product(1)));
}

// A factor gives the same bits as scaling the finished product, for few rows (packed weight) and for many.
static void test_factor_equals_scaled_product() {
  const auto device = make_cpu_device(2);
  constexpr int64_t in = 1100, out = 24;
  constexpr float factor = 0.3f;
  for (const int64_t rows : {3, 200}) {
    std::vector<float> x(rows * in), weight(out * in), plain(rows * out), with(rows * out);
    for (size_t i = 0; i < x.size(); i++) x[i] = test::Subject::uniform(int64_t(i));
    for (size_t i = 0; i < weight.size(); i++) weight[i] = test::Subject::uniform(int64_t(i) + 99);
    const Tensor given{x.data(), Type::f32, rows, in, in}, w{weight.data(), Type::f32, out, in, in};
    const auto to = [&](std::vector<float>& y) { return Tensor{y.data(), Type::f32, rows, out, out}; };
    const auto scaled = [&] {
      for (size_t i = 0; i < plain.size(); i++)
        if (with[i] != plain[i] * factor) return false;
      return plain[0] != 0;
    };
    device->linear(given, w, {}, {}, to(plain));
    device->linear(given, w, {}, {}, to(with), factor);
    CHECK(scaled(), "%d rows", int(rows));
    device->matmul(given, false, w, true, to(plain), false);
    device->matmul(given, false, w, true, to(with), false, factor);
    CHECK(scaled(), "%d rows", int(rows));
  }
}

// Clearing gradients that do not exist yet allocates no memory.
static void test_clearing_allocates_nothing() {
#ifdef GIGPO_COUNTS_MEMORY
  test::Subject subject([] { return make_cpu_device(1); }, test::tiny_model(true));
  const auto allocated = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = allocated();
  subject.engine.actor().clear_gradients();
  CHECK(allocated() == before, "%zu bytes", allocated() - before);
  subject.gradients();
  CHECK(allocated() > before);
#endif
}

static void test_reading_another_type_throws() {
  float numbers[4];
  const Tensor floats{numbers, Type::f32, 2, 2, 2}, halves{numbers, Type::bf16, 2, 2, 2};
  CHECK(floats.floats() == numbers && halves.halves() == reinterpret_cast<uint16_t*>(numbers));
  CHECK_THROWS(floats.halves(), "INTERNAL");
  CHECK_THROWS(halves.row_range(1, 1).floats(), "INTERNAL");
}

int main() {
  test_reading_another_type_throws();
  test_only_written_weights_are_packed_again();
  test_factor_equals_scaled_product();
  test_clearing_allocates_nothing();
  return test::report();
}
