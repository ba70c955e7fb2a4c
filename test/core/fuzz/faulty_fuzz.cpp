// A target with a fault, which the driver must find: it reads beyond the end of an array.
#include "test/core/fuzz/input.h"

std::vector<gigpo::test::Bytes> gigpo::test::corpus() { return random_inputs(4, 20); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gigpo::test::Input in(data, size);
  const std::vector<int32_t> values = in.list<int32_t>(4);
  const volatile int32_t found = values.data()[in.below(5)];
  (void)found;
  return 0;
}
