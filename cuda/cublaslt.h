// NVIDIA's matrix library, where the machine has one: it is neither linked nor shipped, but found and tried when a device
// opens. On Hopper and later cards it is faster than cuda/matmul.cu at products of many rows. It does not promise that a
// row's bits are the same in every batch, so it trains, and samples only where CudaOptions say so.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cuda/matmul.h"

namespace gigpo::cuda {

// For one thread at a time, on the device that was current in `open`.
class MatmulLibrary {
 public:
  // GIGPO_CUBLASLT names a library or its folder, and then no other is tried; "off" means none. Else the first that works
  // of: the one this process has loaded, those of the CUDA toolkit and of Python's packages, and what the linker finds. Null
  // when none works; `why_not` then receives the reason.
  // A library is used only if it is a version whose interface we know, and products of small integers come out exactly.
  static std::unique_ptr<MatmulLibrary> open(std::string* why_not);
  ~MatmulLibrary();
  MatmulLibrary(const MatmulLibrary&) = delete;

  const std::string& path() const;
  std::string version() const;  // "13.1.0"
  // Where it is kept which of its algorithms are the fastest: "kept in …" or "not kept: …".
  std::string kept_choices() const;

  // False when the library has nothing for this product, or not for these alignments: then nothing has been written. A
  // workspace of 32 MiB is what it wants. The first product of a kind that nobody has met on such a card times the library's
  // algorithms (cuda/cublaslt_choices.h), and may load their code: while a graph is captured it takes the first instead.
  bool matmul(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream);

 private:
  struct State;
  explicit MatmulLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gigpo::cuda
