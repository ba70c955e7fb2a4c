// Numbers at the ends of the range, which have no finite scale.
#include "core/quantize.h"

#include <cmath>
#include <vector>

#include "core/quantized.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

std::vector<float> stored(const std::vector<float>& values, Stored type) {
  std::vector<std::byte> bytes(size_t(stored_bytes(type, int64_t(values.size()))));
  quantize(values.data(), type, int64_t(values.size()), bytes.data());
  std::vector<float> found(values.size());
  dequantize(bytes.data(), type, int64_t(found.size()), found.data());
  return found;
}

// Levels of these ranges and scales are infinite. Beside them is a part with a usual range.
void test_tiny_ranges() {
  for (const float tiny : {1e-45f, 1e-39f, 3e-38f, 1e-37f}) {
    for (const bool usual : {false, true}) {
      std::vector<float> values(256, 0);
      for (size_t i = 0; i < 64; i++) values[i] = tiny * float(i % 2);
      for (size_t i = 128; usual && i < 160; i++) values[i] = float(i) - 140;
      for (const Stored type : {Stored::q4_0, Stored::q5_0, Stored::q8_0, Stored::q4_k, Stored::q6_k}) {
        const std::vector<float> found = stored(values, type);
        for (size_t i = 0; i < 256; i++) CHECK(std::abs(found[i] - values[i]) < 1.5f, "%g, number %zu", double(tiny), i);
      }
    }
  }
}

void test_largest() {
  for (const Stored type : {Stored::f32, Stored::f16, Stored::bf16, Stored::q4_0, Stored::q5_0, Stored::q8_0, Stored::q4_k, Stored::q6_k}) {
    const float most = largest_stored(type);
    for (const float sign : {-1.f, 1.f}) {
      std::vector<float> values(256, sign * most);
      for (const float found : stored(values, type)) CHECK(std::isfinite(found) && found * sign > 0.8f * most, "%g", double(found));
    }
  }
}

// A tensor without numbers has no memory. UndefinedBehaviorSanitizer finds null pointers that are given to memcpy.
void test_nothing() {
  for (const Stored type : {Stored::f32, Stored::f16, Stored::q4_k}) CHECK(stored({}, type).empty());
}

}  // namespace

int main() {
  test_nothing();
  test_tiny_ranges();
  test_largest();
  return test::report();
}
