// The clipped value loss: its bounds, its mask and its gradient.
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/kernels/value_loss.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

void test_each_side_of_the_clip() {
  // v, v_old, R, clip -> loss, gradient, clipped
  struct Case {
    double value, old_value, target, clip, loss, gradient;
    bool clipped;
  };
  const Case cases[] = {
      {1, 0, 3, 0.5, 3.125, 0, true},     // moved toward R, beyond the bound: 0.5 is further from R
      {1, 0, -3, 0.5, 8, 4, false},       // moved away from R: full gradient back
      {-1, 0, -3, 0.5, 3.125, 0, true},   // likewise on the other side
      {-1, 0, 3, 0.5, 8, -4, false},
      {0.5, 0, 3, 0.5, 3.125, -2.5, false},  // the bound itself counts as inside
      {-0.5, 0, 3, 0.5, 6.125, -3.5, false},
      {0.2, 0, 0.2, 0.5, 0, 0, false},
      {0.75, 0, 0.625, 0.5, 0.0078125, 0.125, false},  // R in the middle: both terms are equal
      {9, 0, 3, inf, 18, 6, false},  // no clip
  };
  for (const Case& at : cases) {
    const TokenValueLoss found = token_value_loss(at.value, at.old_value, at.target, at.clip);
    CHECK(found.loss == at.loss && found.gradient == at.gradient && found.clipped == at.clipped, "v %g: loss %g, gradient %g",
          at.value, found.loss, found.gradient);
  }
  CHECK(std::isnan(token_value_loss(nan, 0, 1, 0.5).loss) && std::isnan(token_value_loss(nan, 0, 1, 0.5).gradient), "NaN stays NaN");
}

void test_masked_tokens_are_zero() {
  const std::vector<double> values = {1, nan, -1, 0.2}, returns = {3, nan, 3, 0.2}, old = {0, nan, 0, 0}, mask = {1, 0, 1, 1};
  std::vector<double> gradient(4, 7);
  const ValueLossReport report = value_loss({4, values.data(), returns.data(), old.data(), mask.data()}, 0.5, gradient.data());
  CHECK(std::abs(report.loss - (3.125 + 8) / 3) < 1e-15 && std::abs(report.clip_fraction - 1.0 / 3) < 1e-15);
  CHECK((gradient == std::vector<double>{0, 0, -4.0 / 3, 0}));
  const ValueLossReport plain = value_loss({1, values.data(), returns.data()}, inf, gradient.data());
  CHECK(plain.loss == 2 && plain.clip_fraction == 0 && gradient[0] == -2);
  CHECK(value_loss({}, inf, nullptr).loss == 0);
  CHECK_THROWS(value_loss({1, values.data(), returns.data()}, 0.5, gradient.data()), "BAD_ARGUMENT");
}

}  // namespace

int main() {
  test_each_side_of_the_clip();
  test_masked_tokens_are_zero();
  return gigpo::test::report();
}
