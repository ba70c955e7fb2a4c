#include "core/random.h"
#include "test/core/fuzz/input.h"

namespace gigpo::test {

std::vector<Bytes> random_inputs(size_t count, size_t longest) {
  std::vector<Bytes> inputs;
  for (uint32_t n = 0; n < count; n++) {
    const auto word = [&](uint32_t i) { return philox({17, 18}, i, n, 0, 0).word[0]; };
    Bytes bytes(1 + word(0) % longest);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = uint8_t(word(uint32_t(i) + 1));
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

}  // namespace gigpo::test
