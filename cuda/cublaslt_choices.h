// Choice of the fastest cuBLASLt algorithm for a product: measured once per GPU model and kept in the user's cache folder.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "cuda/cublaslt_product.h"

namespace gigpo::cuda::cublaslt {

// The one of `found` that takes least; where several take the same, the first of them, which the library thinks best. Nothing where they
// cannot be timed: in a stream that is being recorded, or without memory for the results. C holds what it did, or the product.
std::optional<Heuristic> fastest(Description& description, const Matmul& product, const std::vector<Heuristic>& found, void* workspace,
                                 cudaStream_t stream);

// Choices that last: two runs compute with the same algorithms, whatever disturbed the measurement. A file holds those of one
// subject (card, driver, library). One that is not whole, or of another subject, counts for nothing and is written anew.
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
