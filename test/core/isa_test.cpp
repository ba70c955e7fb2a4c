// Detection of supported instruction sets, against the compiler's and, if GIGPO_TEST_BEST_ISA is set (scripts/test-arm.mjs), against that one.
#include "core/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "test/core/each_isa.h"

using namespace gigpo;
using cpu::Isa;

namespace {

void test_detection_matches_the_compiler() {
#if defined(GIGPO_X86) && defined(__GNUC__) && !defined(__clang__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  CHECK(cpu::isa_supported(Isa::avx2) == avx2);
  CHECK(cpu::isa_supported(Isa::avx512) == avx512);
  CHECK(cpu::isa_supported(Isa::avx512_bf16) == (avx512 && __builtin_cpu_supports("avx512bf16")));
#endif
#if defined(GIGPO_ARM)
  CHECK(!cpu::isa_supported(Isa::amx_bf16));
  CHECK(cpu::isa_supported(Isa::neon) && !cpu::isa_supported(Isa::avx2) && !cpu::isa_supported(Isa::avx512_bf16));
#else
  CHECK(!cpu::isa_supported(Isa::neon) && !cpu::isa_supported(Isa::neon_bf16));
#endif
  CHECK(cpu::isa_supported(Isa::portable));
}

// The default is the last supported one but AMX.
void test_default_is_the_last_supported() {
  Isa best = Isa::portable;
  for (const Isa isa : cpu::every_isa)
    if (isa != Isa::amx_bf16 && cpu::isa_supported(isa)) best = isa;
  CHECK(cpu::isa() == best);
  if (const char* expected = std::getenv("GIGPO_TEST_BEST_ISA"))
    CHECK(std::string(expected) == cpu::isa_name(best), "%s, not %s", cpu::isa_name(best), expected);
}

}  // namespace

int main() {
  return test::run_all(std::initializer_list<test::Test>{
      {"detection matches the compiler", test_detection_matches_the_compiler},
      {"the default is the last supported set", test_default_is_the_last_supported},
  });
}
