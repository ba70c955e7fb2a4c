#include "core/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace gigpo::cpu {

const char* isa_name(Isa isa) {
  constexpr const char* names[] = {"portable", "avx2", "avx512", "avx512_bf16"};
  return names[int(isa)];
}

bool isa_supported(Isa isa) {
#ifdef GIGPO_X86
  // These builtins also ask the operating system (XGETBV) whether it saves the wide registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  const bool supported[] = {true, avx2, avx512, avx512 && __builtin_cpu_supports("avx512bf16")};
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
