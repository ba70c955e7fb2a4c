// Runs tests once for every instruction set of the CPU kernels that this machine supports.
#pragma once
#include "core/cpu/isa.h"
#include "core/error.h"
#include "test/core/check.h"

namespace gigpo::test {

template <class Body>
void on_each_isa(Body body) {
  for (const cpu::Isa isa : cpu::every_isa) {
    if (!cpu::isa_supported(isa)) {
      std::printf("skipped: %s, which this machine lacks\n", cpu::isa_name(isa));
      CHECK_THROWS(cpu::set_isa(isa), "BAD_ARGUMENT");
      continue;
    }
    cpu::set_isa(isa);
    body(isa);
  }
}

}  // namespace gigpo::test
