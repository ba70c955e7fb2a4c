// Description of a product for cuBLASLt: the library's descriptor objects, and the algorithms that it offers.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <optional>
#include <vector>

#include "cuda/cublaslt_interface.h"
#include "cuda/matmul.h"

namespace gigpo::cuda::cublaslt {

// Largest power of two up to 256 that divides the address.
uint32_t alignment_of(const void* pointer);

// Everything that the choice of an algorithm depends on.
using Key = std::array<int64_t, 15>;
Key key_of(const Matmul& product, size_t workspace_bytes);

// Key of all products that share a choice. The number of tokens (C's rows or, in the gradient of a weight, k) varies
// widely, so it is rounded to one of eight ranges between one power of two and the next.
Key shared_key(const Matmul& product, size_t workspace_bytes);

// Owner of a library object.
template <class T>
struct Object {
  template <class Create, class... Arguments>
  Object(int (*destroy)(T), Create create, Arguments... arguments) : destroy(destroy) {
    if (create(&object, arguments...) != success) object = nullptr;
  }
  ~Object() {
    if (object) destroy(object);
  }
  Object(const Object&) = delete;

  T object = nullptr;
  int (*destroy)(T);
};

// Descriptors of a product, created once for all products of one key. A row-major matrix is the transpose of a
// column-major one of the same stride, and Cᵀ = op(B)ᵀ · op(A)ᵀ, so the library gets B as its A and A as its B, with
// the same flags.
class Description {
 public:
  Description(const Functions& functions, Handle handle, const Matmul& product);

  // Algorithms that the library recommends for this product, best first; empty if it has none.
  std::vector<Heuristic> find(const Matmul& product, size_t workspace_bytes, int wanted) const;
  // An algorithm that was stored for such a product, if the library still supports it for this one.
  std::optional<Heuristic> restore(const Algorithm& algorithm, size_t workspace_bytes) const;
  // Queues the product into `to`, which is C or has the layout of C. Returns whether the library accepted it.
  bool multiply(const Matmul& product, void* to, const Heuristic& chosen, void* workspace, cudaStream_t stream);

 private:
  template <class T>
  bool set(int attribute, T value) const {
    return f_.operation_set(operation_.object, attribute, &value, sizeof value) == success;
  }

  const Functions& f_;
  Handle handle_;
  Object<Operation> operation_;
  Object<Layout> a_, b_, c_, d_;
  const void* bias_ = nullptr;  // value that the operation was last set to
  bool valid_;
};

}  // namespace gigpo::cuda::cublaslt
