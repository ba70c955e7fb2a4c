// cuda/cublaslt_interface.h against NVIDIA's: constants, structures and signatures if cublasLt.h is found (CMake
// searches next to nvcc, and next to the library that GIGPO_CUBLASLT names), function names and version if the library
// is found, and the constants of the fake library (fake_cublaslt.cpp). No driver is needed.
#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

#include "cuda/cublaslt_interface.h"
#include "cuda/cublaslt_open.h"
#include "test/core/check.h"
#if !defined(GIGPO_CUDA_EMULATOR) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define WITH_HEADER
#endif

using namespace gigpo::cuda;

namespace {

#ifdef WITH_HEADER

static_assert(cublaslt::success == CUBLAS_STATUS_SUCCESS);
static_assert(cublaslt::real_f32 == CUDA_R_32F && cublaslt::real_bf16 == CUDA_R_16BF);
static_assert(cublaslt::compute_f32 == CUBLAS_COMPUTE_32F);
static_assert(cublaslt::as_it_is == CUBLAS_OP_N && cublaslt::transposed == CUBLAS_OP_T);
static_assert(cublaslt::operation_transpose_a == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(cublaslt::operation_transpose_b == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(cublaslt::operation_epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(cublaslt::operation_bias_pointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cublaslt::operation_bias_type == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(cublaslt::operation_multiprocessors == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
static_assert(cublaslt::epilogue_plain == CUBLASLT_EPILOGUE_DEFAULT && cublaslt::epilogue_bias == CUBLASLT_EPILOGUE_BIAS);
static_assert(cublaslt::preference_workspace_bytes == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(cublaslt::preference_reductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(cublaslt::preference_alignment_a == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(cublaslt::preference_alignment_a + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(cublaslt::reduction_in_compute_type == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

static_assert(sizeof(cublaslt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublaslt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublaslt::Heuristic, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(cublaslt::Heuristic, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cublaslt::Heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(cublaslt::Heuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

// Whether arguments are passed in the same way: pointers as pointers, numbers of the same size.
template <class A, class B>
constexpr bool passes = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class Ours, class Theirs>
constexpr bool alike = false;
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
constexpr bool alike<R (*)(A...), S (*)(B...)> = passes<R, S> && (passes<A, B> && ...);

using F = cublaslt::Functions;
static_assert(alike<decltype(F::get_version), decltype(&cublasLtGetVersion)>);
static_assert(alike<decltype(F::create), decltype(&cublasLtCreate)>);
static_assert(alike<decltype(F::destroy), decltype(&cublasLtDestroy)>);
static_assert(alike<decltype(F::operation_create), decltype(&cublasLtMatmulDescCreate)>);
static_assert(alike<decltype(F::operation_set), decltype(&cublasLtMatmulDescSetAttribute)>);
static_assert(alike<decltype(F::operation_destroy), decltype(&cublasLtMatmulDescDestroy)>);
static_assert(alike<decltype(F::layout_create), decltype(&cublasLtMatrixLayoutCreate)>);
static_assert(alike<decltype(F::layout_destroy), decltype(&cublasLtMatrixLayoutDestroy)>);
static_assert(alike<decltype(F::preference_create), decltype(&cublasLtMatmulPreferenceCreate)>);
static_assert(alike<decltype(F::preference_set), decltype(&cublasLtMatmulPreferenceSetAttribute)>);
static_assert(alike<decltype(F::preference_destroy), decltype(&cublasLtMatmulPreferenceDestroy)>);
static_assert(alike<decltype(F::find), decltype(&cublasLtMatmulAlgoGetHeuristic)>);
static_assert(alike<decltype(F::check), decltype(&cublasLtMatmulAlgoCheck)>);
static_assert(alike<decltype(F::multiply), decltype(&cublasLtMatmul)>);

#endif

// Every library that is found must have all functions, and a version that `open` accepts.
int check_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return 0;
  cublaslt::Functions functions = {};
  const char* const missing = functions.load(library);
  CHECK(!missing, "%s has no %s", path.c_str(), missing ? missing : "");
  if (!missing) {
    const size_t version = functions.get_version(), major = version / 10000;
    CHECK(major == 12 || major == 13, "%s is of version %zu", path.c_str(), version);
    std::printf("%s: version %zu\n", path.c_str(), version);
  }
  dlclose(library);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int found = argc > 1 ? check_library(argv[1]) : 0;
  CHECK(argc < 2 || found == 1, "%s cannot be opened: %s", argv[1], dlerror());
  const char* const folder = std::getenv("GIGPO_CUBLASLT");
  if (folder && std::string(folder) != "off") {
    for (const char* name : {"", "/libcublasLt.so.13", "/libcublasLt.so.12"}) found += check_library(std::string(folder) + name);
  }
  for (const std::string& path : library_candidates()) found += check_library(path);
#ifdef WITH_HEADER
  std::printf("cublasLt.h of version %d.%d agrees\n", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR);
#else
  std::printf("cublasLt.h was not found: numbers and structures are not compared\n");
#endif
  return gigpo::test::report();
}
