#include "core/cpu/isa.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"

#ifdef GIGPO_X86
#include <cpuid.h>
#endif

namespace gigpo::cpu {

#ifdef GIGPO_X86
// CPU features by the instructions CPUID and XGETBV. (__builtin_cpu_supports needs a library that not every compiler provides.)
struct Features {
  bool avx2 = false, avx512 = false, avx512_bf16 = false;

  Features() {
    constexpr unsigned fma = 1u << 12, saves_state = 1u << 27;                                             // leaf 1, ecx
    constexpr unsigned avx2_bit = 1u << 5, avx512_bits = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;        // leaf 7, ebx: f, dq, bw, vl
    constexpr unsigned bf16 = 1u << 5;                                                                     // leaf 7.1, eax
    constexpr uint64_t avx_state = 0x6, avx512_state = 0xe6;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & (fma | saves_state)) != (fma | saves_state)) return;
    const uint64_t state = saved_state();
    if ((state & avx_state) != avx_state || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return;
    const unsigned more = eax;  // the last sub-leaf
    avx2 = ebx & avx2_bit;
    avx512 = avx2 && (ebx & avx512_bits) == avx512_bits && (state & avx512_state) == avx512_state;
    avx512_bf16 = avx512 && more >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & bf16);
  }

  // Bit mask of the registers that the operating system saves (XCR0).
  static uint64_t saved_state() {
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
  }
};
#endif

const char* isa_name(Isa isa) {
  constexpr const char* names[] = {"portable", "avx2", "avx512", "avx512_bf16"};
  return names[int(isa)];
}

bool isa_supported(Isa isa) {
#ifdef GIGPO_X86
  static const Features features;
  const bool supported[] = {true, features.avx2, features.avx512, features.avx512_bf16};
  return supported[int(isa)];
#else
  return isa == Isa::portable;
#endif
}

static Isa choose() {
  constexpr Isa best_first[] = {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::portable};
  const char* wanted = std::getenv("GIGPO_ISA");
  std::string supported;
  for (const Isa candidate : best_first) {
    if (!isa_supported(candidate)) continue;
    if (!wanted || !*wanted || std::string(wanted) == isa_name(candidate)) return candidate;
    supported += std::string(supported.empty() ? "" : ", ") + isa_name(candidate);
  }
  throw Error("BAD_ARGUMENT", "GIGPO_ISA is \"" + std::string(wanted) +
                                  "\": unset it, or set it to one that this CPU supports (" + supported + ").");
}

static Isa& current() {
  static Isa chosen = choose();
  return chosen;
}

Isa isa() { return current(); }

void set_isa(Isa isa) {
  if (!isa_supported(isa)) throw Error("BAD_ARGUMENT", std::string("This CPU does not support ") + isa_name(isa) + ".");
  current() = isa;
}

}  // namespace gigpo::cpu
