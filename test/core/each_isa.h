// Runs tests once for every instruction set of the CPU kernels that this machine supports, but AMX.
//
// Processors in software compute a hundred times slower. Two variables shorten the tests there: GIGPO_TEST_ISA names the only instruction set
// to test, and GIGPO_TEST_MOST_WORK is the number of multiply-adds beyond which a case is left out.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "test/core/check.h"

namespace gigpo::test {

template <class Body>
void on_each_isa(Body body) {
  const char* const only = std::getenv("GIGPO_TEST_ISA");
  bool found = false;
  for (const cpu::Isa isa : cpu::every_isa) {
    if (only && std::string_view(only) != cpu::isa_name(isa)) continue;
    if (!only && isa == cpu::Isa::amx_bf16) {  // as in the engine; in software by amx_test
      std::printf("skipped: amx_bf16, which has to be named\n");
      continue;
    }
    found = true;
    if (!cpu::isa_supported(isa)) {
      std::printf("skipped: %s, which this machine lacks\n", cpu::isa_name(isa));
      CHECK_THROWS(cpu::set_isa(isa), "BAD_ARGUMENT");
      continue;
    }
    cpu::set_isa(isa);
    body(isa);
  }
  CHECK(found, "GIGPO_TEST_ISA is %s", only ? only : "");
}

// Whether a case of m · n · k multiply-adds is left out.
inline bool is_too_large(int64_t m, int64_t n = 1, int64_t k = 1) {
  static const char* const most = std::getenv("GIGPO_TEST_MOST_WORK");
  return most && m * n * k > std::atoll(most);
}

constexpr int64_t work_of_exponential = 64;  // multiply-adds that take as long as the exponentials of a logit, in double, in a test

}  // namespace gigpo::test
