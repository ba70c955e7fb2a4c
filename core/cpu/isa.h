// Which instruction set the CPU kernels use. Kernel files are compiled once per instruction set, into the namespace
// GIGPO_ISA_NAME, and each exports one constant table of function pointers; GIGPO_KERNEL_TABLE declares the copies.
#pragma once

#if defined(__x86_64__)
#define GIGPO_X86 1
#endif

namespace gigpo::cpu {

// avx512_bf16: avx512 with products of bf16 pairs (vdpbf16ps). Only kernels of bf16 are compiled for it; others take avx512's.
enum class Isa { portable, avx2, avx512, avx512_bf16 };
constexpr Isa every_isa[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16};

const char* isa_name(Isa isa);

// Whether the CPU and the operating system support it, by feature bits.
bool isa_supported(Isa isa);

// The best supported one, or what the environment variable GIGPO_ISA says (portable, avx2, avx512, avx512_bf16).
// Throws BAD_ARGUMENT where that names an unknown or unsupported one.
Isa isa();

// For tests and benchmarks: from now on isa() returns this one, which must be supported.
void set_isa(Isa isa);

}  // namespace gigpo::cpu

// Declares `const Type& name(Isa)`, which selects among the tables that the kernel files define.
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
