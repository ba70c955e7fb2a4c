// AdamW on the CPU against its definition for one weight (core/kernels/moments.h), on every instruction set of this
// machine. With bf16 moments results are bit-identical, wherever in the model a call begins and ends; in fp32, where
// multiply-adds may be fused, they agree closely.
#include <cmath>
#include <vector>

#include "core/cpu/isa.h"
#include "core/device.h"
#include "core/kernels/moments.h"
#include "test/core/check.h"
#include "test/core/each_isa.h"

using namespace gigpo;

static const AdamW example = {.learning_rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f, .weight_decay = 0.1f,
                              .gradient_scale = 0.5f, .correction1 = 0.19f, .correction2 = 0.0199f, .rounding = {123, 456}};

static float number(uint32_t stream, int64_t i) { return 2 * open_uniform(philox({3, 4}, uint32_t(i), stream, 0, 0).word[0]) - 1; }

static void step_of(int64_t index, int64_t count, Type moments) {
  const bool rounded = moments == Type::bf16;
  std::vector<float> weights, gradients, first, second;
  for (int64_t i = 0; i < count; i++) {
    weights.push_back(number(1, i)), gradients.push_back(number(2, i) * std::pow(10.0f, float(i % 9 - 4)));
    first.push_back(from_bf16(to_bf16(number(3, i)))), second.push_back(from_bf16(to_bf16(std::abs(number(4, i)))));
  }
  if (count > 9) gradients[3] = INFINITY, gradients[5] = NAN, gradients[7] = 2e19f, second[8] = from_bf16(0x7F7F), first[9] = -0.0f;
  std::vector<uint16_t> halves[2];
  for (const float x : first) halves[0].push_back(to_bf16(x));
  for (const float x : second) halves[1].push_back(to_bf16(x));
  std::vector<float> w = weights, m = first, v = second;
  const auto device = make_cpu_device(2);
  device->adamw({w.data(), nullptr, gradients.data(), rounded ? (void*)halves[0].data() : m.data(),
                 rounded ? (void*)halves[1].data() : v.data(), moments, index, count},
                example);
  const AdamWFactors factors(example);
  for (int64_t i = 0; i < count; i++) {
    const AdamWElement next = adamw_element({weights[i], first[i], second[i]}, gradients[i], factors);
    const float terms = 1 + std::abs(gradients[i]) + gradients[i] * gradients[i] + second[i];
    const auto same = [&](float found, float expected) {
      if (std::isnan(expected) || std::isinf(expected)) return std::isnan(found) == std::isnan(expected);
      return std::abs(found - expected) <= (rounded ? 0 : 3e-7f * terms);
    };
    CHECK(same(w[i], next.weight), "%s: weight %ld of %ld at %ld: %g, not %g", cpu::isa_name(cpu::isa()), long(i), long(count), long(index),
          double(w[i]), double(next.weight));
    if (rounded) {
      const uint32_t word = moment_noise(example.rounding, (index + i) / 4).word[(index + i) % 4];
      CHECK(halves[0][i] == round_to_bf16(next.first, word & 0xFFFF) && halves[1][i] == round_to_bf16(next.second, word >> 16),
            "%s: moments of weight %ld of %ld at %ld", cpu::isa_name(cpu::isa()), long(i), long(count), long(index));
    } else {
      CHECK(same(m[i], next.first) && same(v[i], next.second), "%s: moments of weight %ld", cpu::isa_name(cpu::isa()), long(i));
    }
  }
}

int main() {
  test::on_each_isa([&](cpu::Isa) {
    for (const Type moments : {Type::f32, Type::bf16}) {
      for (const int64_t count : {1, 3, 15, 17, 63, 64, 65, 200}) {
        // Includes indices at which the blocks of random numbers exceed 32 bits.
        for (const int64_t index : {int64_t{0}, int64_t{1}, int64_t{62}, int64_t{64}, int64_t{1} << 34, (int64_t{1} << 34) - 70}) {
          step_of(index, count, moments);
        }
      }
      step_of(13, 140000, moments);
    }
  });
  return test::report();
}
