// Selection of the instruction set of the CPU kernels. Kernel files are compiled once per instruction set, in the namespace GIGPO_ISA_NAME.
// Each exports one constant table of function pointers; GIGPO_KERNEL_TABLE declares the copies.
#pragma once

#if defined(__x86_64__)
#define GIGPO_X86 1
#elif defined(__aarch64__)
#define GIGPO_ARM 1
#endif

namespace gigpo::cpu {

// avx512_bf16: avx512 with products of bf16 pairs (vdpbf16ps). amx_bf16: avx512 with products of bf16 tiles (AMX). neon: 64-bit ARM, tiles for
// its 32 registers. neon_bf16: neon with products of bf16 matrices (bfmmla). Only kernels of bf16 are compiled for the sets with bf16; others
// take those of avx512 and neon.
enum class Isa { portable, avx2, avx512, avx512_bf16, amx_bf16, neon, neon_bf16 };
constexpr Isa every_isa[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16, Isa::neon, Isa::neon_bf16};

const char* isa_name(Isa isa);

// Whether CPU and operating system support an instruction set, by CPU feature bits.
bool isa_supported(Isa isa);

// Best supported instruction set, the last of every_isa, or the one that the environment variable GIGPO_ISA names. Throws Error BAD_ARGUMENT
// if that name is unknown or unsupported.
Isa isa();

// Sets the result of isa(), for tests and benchmarks. The instruction set must be supported.
void set_isa(Isa isa);

}  // namespace gigpo::cpu

// Declares `const Type& name(Isa)`, which returns the table of one instruction set.
#if defined(GIGPO_X86)
#define GIGPO_KERNEL_TABLE(Type, name)                                                         \
  namespace portable { extern const Type name; }                                               \
  namespace avx2 { extern const Type name; }                                                   \
  namespace avx512 { extern const Type name; }                                                 \
  [[maybe_unused]] static inline const Type& name(Isa isa) {                                   \
    return isa >= Isa::avx512 ? avx512::name : isa == Isa::avx2 ? avx2::name : portable::name; \
  }
#elif defined(GIGPO_ARM)
#define GIGPO_KERNEL_TABLE(Type, name)                                 \
  namespace portable { extern const Type name; }                       \
  namespace neon { extern const Type name; }                           \
  [[maybe_unused]] static inline const Type& name(Isa isa) {           \
    return isa == Isa::portable ? portable::name : neon::name;         \
  }
#else
#define GIGPO_KERNEL_TABLE(Type, name)           \
  namespace portable { extern const Type name; } \
  [[maybe_unused]] static inline const Type& name(Isa) { return portable::name; }
#endif
