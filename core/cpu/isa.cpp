#include "core/cpu/isa.h"

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "core/error.h"

#if defined(GIGPO_X86)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(GIGPO_ARM) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(GIGPO_ARM) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace gigpo::cpu {

#if defined(GIGPO_X86)
// CPU features by the instructions CPUID and XGETBV. (__builtin_cpu_supports needs a library that not every compiler provides.)
struct Features {
  bool avx2 = false, avx512 = false, avx512_bf16 = false, amx_bf16 = false;

  Features() {
    constexpr unsigned fma = 1u << 12, saves_state = 1u << 27;                                             // leaf 1, ecx
    constexpr unsigned avx2_bit = 1u << 5, avx512_bits = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;        // leaf 7, ebx: f, dq, bw, vl
    constexpr unsigned bf16 = 1u << 5;                                                                     // leaf 7.1, eax
    [[maybe_unused]] constexpr unsigned amx_bits = 1u << 22 | 1u << 24;                                    // leaf 7, edx: bf16, tile
    constexpr uint64_t avx_state = 0x6, avx512_state = 0xe6;
    [[maybe_unused]] constexpr uint64_t amx_state = 0x60000;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & (fma | saves_state)) != (fma | saves_state)) return;
    const uint64_t state = saved_state();
    if ((state & avx_state) != avx_state || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return;
    const unsigned more = eax;  // the last sub-leaf
    avx2 = ebx & avx2_bit;
    avx512 = avx2 && (ebx & avx512_bits) == avx512_bits && (state & avx512_state) == avx512_state;
#if defined(GIGPO_AMX_EMULATOR)
    amx_bf16 = avx512;
#elif defined(GIGPO_HAS_AMX)
    amx_bf16 = avx512 && (edx & amx_bits) == amx_bits && (state & amx_state) == amx_state && may_use_tiles();
#endif
    avx512_bf16 = avx512 && more >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & bf16);
  }

  // Bit mask of the registers that the operating system saves (XCR0).
  static uint64_t saved_state() {
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
  }

  // Linux saves tiles only for processes that ask (ARCH_REQ_XCOMP_PERM, since 5.16; Documentation/arch/x86/xstate.rst); the permission is the
  // process's, with all its threads. It is refused where a thread's signal stack is too small for them. Other systems are not asked.
  [[maybe_unused]] static bool may_use_tiles() {
#if defined(__linux__)
    constexpr long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
  }
};
#elif defined(GIGPO_ARM)
// Whether the operating system reports bf16 instructions. (Every 64-bit ARM CPU has NEON.)
static bool has_arm_bf16() {
#if defined(__linux__)
  constexpr unsigned long bf16 = 1ul << 14;  // HWCAP2_BF16, which older headers lack
  return getauxval(AT_HWCAP2) & bf16;
#elif defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  return sysctlbyname("hw.optional.arm.FEAT_BF16", &has, &size, nullptr, 0) == 0 && has;
#else
  return false;
#endif
}
#endif

const char* isa_name(Isa isa) {
  constexpr const char* names[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx_bf16", "neon", "neon_bf16"};
  return names[int(isa)];
}

bool isa_supported(Isa isa) {
#if defined(GIGPO_X86)
  static const Features features;
  const bool supported[] = {true, features.avx2, features.avx512, features.avx512_bf16, features.amx_bf16, false, false};
  return supported[int(isa)];
#elif defined(GIGPO_ARM)
  static const bool bf16 = has_arm_bf16();
  return isa == Isa::portable || isa == Isa::neon || (isa == Isa::neon_bf16 && bf16);
#else
  return isa == Isa::portable;
#endif
}

// The last supported set, or GIGPO_ISA. AMX has to be named: its kernels have not run on hardware yet.
static Isa choose() {
  const char* wanted = std::getenv("GIGPO_ISA");
  std::string supported;
  for (int i = int(std::size(every_isa)) - 1; i >= 0; i--) {
    const Isa candidate = every_isa[i];
    if (!isa_supported(candidate)) continue;
    const bool by_default = !wanted || !*wanted;
    if (by_default ? candidate != Isa::amx_bf16 : std::string(wanted) == isa_name(candidate)) return candidate;
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
