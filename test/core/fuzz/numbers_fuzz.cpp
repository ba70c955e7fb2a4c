// Blocks of quantized numbers of model files, and numbers that are quantized for an export.
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "core/quantize.h"
#include "core/quantized.h"
#include "test/core/fuzz/input.h"

namespace gigpo::test {

static constexpr int types = int(Stored::iq4_xs) + 1;

std::vector<Bytes> corpus() {
  std::vector<Bytes> all = random_inputs(types, 2100);
  for (size_t type = 0; type < types; type++) all[type][0] = uint8_t(type);
  return all;
}

// In memory of its own, so that a sanitizer sees a read beyond its end.
static std::vector<float> dequantized(const std::vector<std::byte>& bytes, Stored type) {
  const BlockShape block = block_of(type);
  std::vector<float> values(bytes.size() / size_t(block.bytes) * size_t(block.elements));
  dequantize(bytes.data(), type, int64_t(values.size()), values.data());
  return values;
}

// Finite numbers in the range of the type, as the binding checks, are finite when they are read again.
static void store(std::vector<float> values, Stored type) {
  const size_t block = size_t(block_of(type).elements);
  values.resize(values.size() / block * block);
  for (float& value : values) {
    if (!(std::abs(value) <= largest_stored(type))) value = 1;
  }
  std::vector<std::byte> bytes(size_t(stored_bytes(type, int64_t(values.size()))));
  quantize(values.data(), type, int64_t(values.size()), bytes.data());
  for (const float found : dequantized(bytes, type)) {
    if (!std::isfinite(found)) std::abort();
  }
}

}  // namespace gigpo::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gigpo;
  test::Input in(data, size);
  const auto type = Stored(in.below(test::types)), other = Stored(in.below(test::types));
  const auto bytes = in.list<std::byte>(in.left() / size_t(block_of(type).bytes) * size_t(block_of(type).bytes));
  const std::vector<float> values = test::dequantized(bytes, type);
  if (can_quantize(other)) test::store(values, other);
  return 0;
}
