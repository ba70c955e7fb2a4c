// AdamW and the norm of gradients, against loops over the same elements on the CPU.
#include "core/kernels/moments.h"
#include "cuda/operations.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;

namespace {

AdamW example_step() {
  AdamW step = {};
  step.learning_rate = 1e-2f, step.beta1 = 0.9f, step.beta2 = 0.99f, step.epsilon = 1e-8f, step.weight_decay = 0.1f;
  step.gradient_scale = 0.5f, step.correction1 = 0.19f, step.correction2 = 0.0199f;
  step.rounding = {123, 456};
  return step;
}

// All memory that a step accesses, `offset` elements from an aligned address.
struct State {
  State(Type moments, int64_t count, int64_t offset)
      : weights(Type::f32, 1, count, at(offset)),
        gradients(Type::f32, 1, count, at(offset)),
        first(moments, 1, count, at(offset)),
        second(moments, 1, count, at(offset)),
        compute(Type::bf16, 1, count, at(offset)) {
    w = weights.fill(1), g = gradients.fill(2, 3), m = first.fill(3);
    v = second.fill(4);
    for (float& value : v) value *= value;
    v = second.fill(v);
  }
  static Layout at(int64_t offset) { return {"", 0, offset}; }

  void step(const AdamW& by, int64_t from, int64_t count, int64_t index, bool with_copy) const {
    const auto begin = [&](const DeviceMatrix& x) { return x.view.column_range(from, count).data; };
    AdamWBuffers buffers = {};
    buffers.weights = static_cast<float*>(begin(weights));
    buffers.compute = with_copy ? begin(compute) : nullptr;
    buffers.gradients = static_cast<const float*>(begin(gradients));
    buffers.first_moment = begin(first);
    buffers.second_moment = begin(second);
    buffers.moments = first.view.type;
    buffers.index = index + from;
    buffers.count = count;
    cuda::adamw(buffers, by, nullptr);
  }

  DeviceMatrix weights, gradients, first, second, compute;
  std::vector<float> w, g, m, v;
};

struct Expected {
  std::vector<double> w, m, v;
};

// Computed in double; bf16 moments are rounded with the same random bits as in the kernel.
Expected expected_step(const State& state, const AdamW& by, int64_t index, Type moments) {
  Expected next;
  for (size_t i = 0; i < state.w.size(); i++) {
    const double g = double(state.g[i]) * by.gradient_scale;
    const double m = double(by.beta1) * state.m[i] + (1 - double(by.beta1)) * g;
    const double v = double(by.beta2) * state.v[i] + (1 - double(by.beta2)) * g * g;
    const double move = m / by.correction1 / (std::sqrt(v / by.correction2) + by.epsilon);
    next.w.push_back(state.w[i] * (1 - double(by.learning_rate) * by.weight_decay) - by.learning_rate * move);
    const int64_t element = index + int64_t(i);
    const uint32_t noise = moment_noise(by.rounding, element / 4).word[element % 4];
    next.m.push_back(moments == Type::f32 ? m : from_bf16(round_to_bf16(float(m), noise & 0xFFFF)));
    next.v.push_back(moments == Type::f32 ? v : from_bf16(round_to_bf16(float(v), noise >> 16)));
  }
  return next;
}

// Equal random bits round equally, except for values that differ in the last digit and are on a rounding boundary:
// rare.
void check_rounded(const std::string& what, const std::vector<float>& found, const std::vector<double>& expected) {
  size_t different = 0;
  for (size_t i = 0; i < found.size(); i++) {
    different += found[i] != float(expected[i]);
    const bool near = std::fabs(found[i] - expected[i]) <= std::fabs(expected[i]) / 100;
    CHECK(near, "%s: element %d is %g, not %g", what.c_str(), int(i), double(found[i]), expected[i]);
  }
  CHECK(different <= 2 + found.size() / 500, "%s: %d are rounded differently", what.c_str(), int(different));
}

void steps() {
  const AdamW by = example_step();
  for (const Type moments : {Type::f32, Type::bf16})
    for (const int64_t count : {0, 1, 3, 4, 1000, 5003})
      for (const int64_t index : {int64_t{0}, int64_t{2}, int64_t{7}, (int64_t{5} << 32) + 1})
        for (const int64_t offset : {int64_t{0}, index % 4}) {
          const std::string range = std::to_string(count) + " from " + std::to_string(index);
          const std::string what = "adamw " + name_of(moments) + " " + range;
          State state(moments, count, offset);
          const Expected expected = expected_step(state, by, index, moments);
          state.step(by, 0, count, index, true);
          const std::vector<float> w = state.weights.read(what), m = state.first.read(what), v = state.second.read(what);
          check_near(what, Type::f32, w, expected.w, 2e-6);
          if (moments == Type::f32) {
            check_near(what + " first moment", Type::f32, m, expected.m, 1e-6);
            check_near(what + " second moment", Type::f32, v, expected.v, 1e-6);
          } else {
            check_rounded(what + " first moment", m, expected.m);
            check_rounded(what + " second moment", v, expected.v);
          }
          const std::vector<float> copy = state.compute.read(what);
          for (size_t i = 0; i < w.size(); i++)
            CHECK(copy[i] == from_bf16(to_bf16(w[i])), "%s: copy of %d", what.c_str(), int(i));
          state.gradients.read(what);

          // In two calls and without a copy: bit-identical.
          State again(moments, count, offset);
          const int64_t cut = count / 3;
          again.step(by, 0, cut, index, false);
          again.step(by, cut, count - cut, index, false);
          const bool same = again.weights.read(what) == w && again.first.read(what) == m && again.second.read(what) == v;
          CHECK(same, "%s: two calls give other results", what.c_str());
          for (const float value : again.compute.read(what)) CHECK(std::isnan(value), "%s: a copy was written", what.c_str());
        }
}

void rounding() {
  // The mean of all 65536 roundings is the value, and each result is an adjacent bf16.
  for (const float value : {1.0f, 1.0009765625f, -3.14159274f, 1e-39f, 3.3e38f, -2.00781226f}) {
    double sum = 0;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const float below = from_bf16(uint16_t(bits >> 16));
    for (uint32_t noise = 0; noise < 65536; noise++) {
      const float rounded = from_bf16(round_to_bf16(value, noise));
      CHECK(std::fabs(rounded - below) <= std::fabs(below) / 128 + 1e-40f);
      sum += rounded;
    }
    CHECK(std::fabs(sum / 65536 - value) <= 1e-9 * std::fabs(value), "%g: %g", double(value), sum / 65536);
  }
  for (const uint32_t noise : {0u, 0x8000u, 0xFFFFu}) {
    CHECK(from_bf16(round_to_bf16(INFINITY, noise)) == INFINITY && from_bf16(round_to_bf16(-INFINITY, noise)) == -INFINITY);
    CHECK(std::isnan(from_bf16(round_to_bf16(NAN, noise))));
    CHECK(std::isfinite(from_bf16(round_to_bf16(3.4028234e38f, noise))));
  }
}

void norms() {
  for (const int64_t count : {0, 1, 3, 2048, 65535, 65536, 65537, 300001})
    for (const int64_t offset : {0, 1}) {
      DeviceMatrix x(Type::f32, 1, count, {"", 0, offset}), shifted(Type::f32, 1, count, {"", 0, 1 - offset});
      std::vector<float> values = x.fill(5, 2);
      if (count > 3) values[1] = 1e25f, values[2] = 1e-30f, values = x.fill(values);
      shifted.fill(values);
      double expected = 0;
      for (const float value : values) expected += double(value) * double(value);
      const DeviceArray<double> result(2);
      const DeviceArray<char> workspace(cuda::squared_norm_workspace(count));
      cuda::squared_norm(x.view.floats(), count, result.data, workspace.data, nullptr);
      cuda::squared_norm(shifted.view.floats(), count, result.data + 1, workspace.data, nullptr);
      const std::vector<double> found = result.read();
      CHECK(std::fabs(found[0] - expected) <= 1e-12 * expected, "%d: %.17g, not %.17g", int(count), found[0], expected);
      CHECK(found[0] == found[1], "%d elements: the sum depends on the address", int(count));
    }
}

constexpr gigpo::test::Test tests[] = {{"AdamW", steps}, {"stochastic rounding", rounding}, {"squared norm", norms}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
