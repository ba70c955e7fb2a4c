// What the CPU device keeps, and what it need not do again.
#include <vector>

#include "core/device.h"
#include "test/core/check.h"
#include "test/core/engine_checks.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which allocate by themselves
#define GIGPO_COUNTS_MEMORY 1
#include <malloc.h>
#endif

using namespace gigpo;

// A weight is packed again where it was written, and only there: what changes unannounced does not show. (Device memory is host
// memory here.)
static void only_written_weights_are_packed_again() {
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
  CHECK(product(0) == in && product(1) == 2 * in, "the second was written: %g %g", double(product(0)), double(product(1)));
  change(3, out * in - 1, 1);
  CHECK(product(0) == 3 * in && product(1) == 2 * in, "the first's last weight: %g %g", double(product(0)), double(product(1)));
  change(4, out * in - 1, 2);
  CHECK(product(0) == 4 * in && product(1) == 4 * in, "both: %g %g", double(product(0)), double(product(1)));
}

// A factor is what a pass over the finished product would do, to the bit: of few rows, whose weight is packed, and of many.
static void factors_are_applied_last() {
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

// Clearing what no training has made takes no memory for it.
static void clearing_allocates_nothing() {
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

static void a_matrix_is_read_as_what_it_is() {
  float numbers[4];
  const Tensor floats{numbers, Type::f32, 2, 2, 2}, halves{numbers, Type::bf16, 2, 2, 2};
  CHECK(floats.floats() == numbers && halves.halves() == reinterpret_cast<uint16_t*>(numbers));
  CHECK_THROWS(floats.halves(), "INTERNAL");
  CHECK_THROWS(halves.row_range(1, 1).floats(), "INTERNAL");
}

int main() {
  a_matrix_is_read_as_what_it_is();
  only_written_weights_are_packed_again();
  factors_are_applied_last();
  clearing_allocates_nothing();
  return test::report();
}
