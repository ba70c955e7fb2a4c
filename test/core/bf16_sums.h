// Definitions of the sums of bf16 products, an instruction at a time, in scalar code: what each instruction set documents.
#pragma once
#include <cmath>
#include <cstring>
#include <optional>

#include "core/cpu/isa.h"

namespace gigpo::test {

// a + b rounded to odd: if it is not a float, the one of the two nearest floats whose last bit is 1. Infinities and subnormal numbers are left out.
inline float add_to_odd(float a, float b) {
  const double sum = double(a) + b, part = sum - a, error = (a - (sum - part)) + (b - part);  // exact: a + b = sum + error (Knuth's TwoSum)
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if (error != 0) bits = (bits - ((error > 0) != (sum > 0))) | 1;  // cut, then odd
  const bool inexact = bits & 0x1fffffff;                          // the 29 bits that a float lacks
  bits &= ~uint64_t(0x1fffffff);
  double cut;
  std::memcpy(&cut, &bits, sizeof cut);
  const float result = float(cut);
  uint32_t word;
  std::memcpy(&word, &result, sizeof word);
  word |= inexact;
  float odd;
  std::memcpy(&odd, &word, sizeof odd);
  return odd;
}

// Sum of a[p]·b[p], p < count, of numbers that bf16 can represent; empty if the instruction set is not defined here.
inline std::optional<float> sum_of_products(cpu::Isa isa, int64_t count, auto a, auto b) {
  const auto product = [&](int64_t p) { return p < count ? a(p) * b(p) : 0; };  // exact
  float sum = 0;
  if (isa == cpu::Isa::avx512_bf16) return std::nullopt;
  if (isa == cpu::Isa::neon_bf16)
    for (int64_t p = 0; p < count; p += 2) sum = add_to_odd(sum, add_to_odd(product(p), product(p + 1)));
  else if (isa == cpu::Isa::amx_bf16)
    for (int64_t block = 0; block < count; block += 32) {
      float first = 0, second = 0;
      for (int64_t p = block; p < block + 32; p += 2) first += product(p), second += product(p + 1);
      sum += first + second;
    }
  else
    for (int64_t p = 0; p < count; p++) sum += product(p);
  return sum;
}

}  // namespace gigpo::test
