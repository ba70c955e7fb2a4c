// Half-precision numbers against their definition, and the transfer of numbers from a file's bytes to device memory.
#include "core/stored_floats.h"

#include <cmath>

#include "core/flat_buffer.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

// (-1)^sign · 2^(exponent - 15) · 1.fraction, without the leading one if the exponent is 0 (IEEE 754-2008, 3.4).
double half_by_definition(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

void test_every_half_matches_its_definition() {
  for (uint32_t bits = 0; bits < 1 << 16; bits++) {
    const double wanted = half_by_definition(uint16_t(bits));
    CHECK(same(from_f16(uint16_t(bits)), wanted), "%x: %g, not %g", bits, from_f16(uint16_t(bits)), wanted);
  }
}

// From an odd address, at an offset, and longer than one thread's part.
void test_numbers_arrive_as_stored() {
  constexpr int64_t count = 200'001, offset = 7;
  for (const int threads : {1, 3}) {
    const auto device = make_cpu_device(threads);
    for (const Type kept : {Type::f32, Type::bf16}) {
      FlatBuffer buffer(*device, kept, count + 2 * offset);
      buffer.zero();
      for (const Stored type : {Stored::f32, Stored::f16, Stored::bf16}) {
        std::vector<std::byte> bytes(1 + stored_bytes(type, count));
        std::vector<float> wanted(count), found(count + 2 * offset);
        for (int64_t i = 0; i < count; i++) {
          const float number = 0.37f * float(i % 1001 - 500);
          const uint16_t half = type == Stored::bf16 ? to_bf16(number) : uint16_t(i & 0x7BFF);
          std::memcpy(&bytes[1 + stored_bytes(type, i)], type == Stored::f32 ? static_cast<const void*>(&number) : &half, stored_bytes(type, 1));
          wanted[i] = type == Stored::f32 ? number : type == Stored::bf16 ? from_bf16(half) : float(half_by_definition(half));
          if (kept == Type::bf16) wanted[i] = from_bf16(to_bf16(wanted[i]));
        }
        buffer.write(offset, &bytes[1], type, count);
        buffer.read(0, found.data(), int64_t(found.size()));
        int64_t different = 0;
        for (int64_t i = 0; i < count; i++) different += found[offset + i] != wanted[i];
        CHECK(different == 0, "%d different, stored as %d", int(different), int(type));
        CHECK(found[offset - 1] == 0 && found[offset + count] == 0);
      }
    }
  }
}

}  // namespace

int main() {
  return test::run_all(std::initializer_list<test::Test>{
      {"every half-precision number matches its definition", test_every_half_matches_its_definition},
      {"numbers arrive on the device as stored", test_numbers_arrive_as_stored},
  });
}
