// The part of cuBLASLt's binary interface (versions 12 and 13) that gigpo calls: function names, constants and
// structures. The library is not needed to build.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace gigpo::cuda::cublaslt {

using Handle = struct HandleObject*;
using Operation = struct OperationObject*;
using Layout = struct LayoutObject*;
using Preference = struct PreferenceObject*;
using Stream = void*;

constexpr int success = 0;

// Data types, compute type, and transposition of an operand.
constexpr int real_f32 = 0, real_bf16 = 14;
constexpr int compute_f32 = 68;
constexpr int32_t as_it_is = 0, transposed = 1;
constexpr int type_number(Type type) { return type == Type::f32 ? real_f32 : real_bf16; }

// Attributes of an operation, and the values of the epilogue: int32, int32, uint32, const void*, int32, int32.
constexpr int operation_transpose_a = 3, operation_transpose_b = 4, operation_epilogue = 7, operation_bias_pointer = 8,
              operation_multiprocessors = 15, operation_bias_type = 26;
constexpr uint32_t epilogue_plain = 1, epilogue_bias = 4;

// Attributes of a preference: uint64, uint32, and four uint32 for A, B, C, D.
constexpr int preference_workspace_bytes = 1, preference_reductions = 3, preference_alignment_a = 5;
// Partial sums stay in fp32 in the workspace and are added in a fixed order, instead of in C, where they would be
// rounded to its type.
constexpr uint32_t reduction_in_compute_type = 2;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96 && offsetof(Heuristic, status) == 72, "as the library has it");

// D = α op(A) op(B) + β C, all column-major.
struct Functions {
  size_t (*get_version)();
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*operation_create)(Operation*, int compute, int scale_type);
  int (*operation_set)(Operation, int attribute, const void* value, size_t bytes);
  int (*operation_destroy)(Operation);
  int (*layout_create)(Layout*, int type, uint64_t rows, uint64_t columns, int64_t stride);
  int (*layout_destroy)(Layout);
  int (*preference_create)(Preference*);
  int (*preference_set)(Preference, int attribute, const void* value, size_t bytes);
  int (*preference_destroy)(Preference);
  int (*find)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int wanted, Heuristic*, int* found);
  int (*check)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, const Algorithm*, Heuristic*);
  int (*multiply)(Handle, Operation, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,
                  const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace, size_t workspace_bytes, Stream);

  // Name of the first function that the library does not have, or nullptr.
  const char* load(void* library) {
    const char* missing = nullptr;
    const auto get = [&](auto& function, const char* name) {
      void* const symbol = dlsym(library, name);
      if (!symbol && !missing) missing = name;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    get(get_version, "cublasLtGetVersion");
    get(create, "cublasLtCreate");
    get(destroy, "cublasLtDestroy");
    get(operation_create, "cublasLtMatmulDescCreate");
    get(operation_set, "cublasLtMatmulDescSetAttribute");
    get(operation_destroy, "cublasLtMatmulDescDestroy");
    get(layout_create, "cublasLtMatrixLayoutCreate");
    get(layout_destroy, "cublasLtMatrixLayoutDestroy");
    get(preference_create, "cublasLtMatmulPreferenceCreate");
    get(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    get(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    get(find, "cublasLtMatmulAlgoGetHeuristic");
    get(check, "cublasLtMatmulAlgoCheck");
    get(multiply, "cublasLtMatmul");
    return missing;
  }
};

}  // namespace gigpo::cuda::cublaslt
