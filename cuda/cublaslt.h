// NVIDIA's matrix library cuBLASLt, if installed. The library is neither linked nor shipped, but searched and tested when a device is opened.
// On Hopper and later GPUs it is faster than cuda/matmul.cu for products of many rows. It does not guarantee batch invariance, so it is used
// in training, and in sampling only if CudaOptions allow this.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// Not thread-safe. Works on the device that was current in `open`.
class MatmulLibrary {
 public:
  // Opens the library. The environment variable GIGPO_CUBLASLT names a library or its folder, and then no other is tried; "off": none.
  // Otherwise the first that works of: the library already loaded in this process, those of the CUDA toolkit and of Python packages, and the
  // one that the dynamic linker finds. Null if none works; `why_not` then receives the reason. A library is used only if its version has a
  // known interface and a test with products of small integers is exact.
  static std::unique_ptr<MatmulLibrary> open(std::string* why_not);
  ~MatmulLibrary();
  MatmulLibrary(const MatmulLibrary&) = delete;

  const std::string& path() const;
  std::string version() const;  // "13.1.0"
  // Storage of the choices of the fastest algorithms: "kept in …" or "not kept: …".
  std::string kept_choices() const;

  // Computes a product. Returns false, without writing, if the library has no algorithm for this product or these alignments. The recommended
  // workspace is 32 MiB. The first product of each kind on a GPU model measures the library's algorithms (cuda/cublaslt_choices.h) and may
  // load their code; while a graph is captured, the first algorithm is used instead.
  bool matmul(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream);

 private:
  struct State;
  explicit MatmulLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gigpo::cuda
