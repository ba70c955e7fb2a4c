// Choice of the fastest cuBLASLt algorithm for a product: measured once per GPU model and stored in the user's cache
// folder.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "cuda/cublaslt_product.h"

namespace gigpo::cuda::cublaslt {

// Fastest algorithm of `found`; among equally fast ones the first, which the library ranks best. Empty if they cannot
// be timed: while the stream is captured, or without memory for the results. C is either unchanged or holds the
// product.
std::optional<Heuristic> fastest(Description& description, const Matmul& product, const std::vector<Heuristic>& found, void* workspace,
                                 cudaStream_t stream);

// Persistent choices: all runs compute with the same algorithms, whatever disturbed the measurement. A file holds the
// choices for one subject (GPU, driver, library). A damaged file, or one of another subject, is ignored and replaced.
class KeptChoices {
 public:
  explicit KeptChoices(std::string subject);

  const Algorithm* find(const Key& key);
  void keep(const Key& key, const Algorithm& algorithm);

  // "kept in …" or "not kept: …".
  std::string place() const;

 private:
  bool read();  // adds the choices of the file; false if the file is not of this subject
  void write();

  std::string subject_, path_, why_not_;
  std::map<Key, Algorithm> choices_;
};

}  // namespace gigpo::cuda::cublaslt
