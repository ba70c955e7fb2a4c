// Selection of the instruction set of the CPU kernels. Kernel files are compiled once per instruction set, in the namespace GIGPO_ISA_NAME.
// Each exports one constant table of function pointers; GIGPO_KERNEL_TABLE declares the copies.
#pragma once

#if defined(__x86_64__)
#define GIGPO_X86 1
#endif

namespace gigpo::cpu {

// avx512_bf16: avx512 with products of bf16 pairs (vdpbf16ps). Only kernels of bf16 are compiled for it; others take avx512's.
enum class Isa { portable, avx2, avx512, avx512_bf16 };
constexpr Isa every_isa[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16};

const char* isa_name(Isa isa);

// Whether CPU and operating system support an instruction set, by CPU feature bits.
bool isa_supported(Isa isa);

// Best supported instruction set, or the value of the environment variable GIGPO_ISA (portable, avx2, avx512, avx512_bf16). Throws Error
// BAD_ARGUMENT if that value is unknown or unsupported.
Isa isa();

// Sets the result of isa(), for tests and benchmarks. The instruction set must be supported.
void set_isa(Isa isa);

}  // namespace gigpo::cpu

// Declares `const Type& name(Isa)`, which returns the table of one instruction set.
#ifdef GIGPO_X86
#define GIGPO_KERNEL_TABLE(Type, name)                                                         \
  namespace portable { extern const Type name; }                                               \
  namespace avx2 { extern const Type name; }                                                   \
  namespace avx512 { extern const Type name; }                                                 \
  [[maybe_unused]] static inline const Type& name(Isa isa) {                                   \
    return isa >= Isa::avx512 ? avx512::name : isa == Isa::avx2 ? avx2::name : portable::name; \
  }
#else
#define GIGPO_KERNEL_TABLE(Type, name)           \
  namespace portable { extern const Type name; } \
  [[maybe_unused]] static inline const Type& name(Isa) { return portable::name; }
#endif
