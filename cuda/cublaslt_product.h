// One product as cuBLASLt knows it: the objects that describe it, and the algorithms that the library has for it.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <optional>
#include <vector>

#include "cuda/cublaslt_interface.h"
#include "cuda/matmul.h"

namespace gigpo::cuda::cublaslt {

// The largest power of two up to 256 that the address is a multiple of.
uint32_t alignment_of(const void* pointer);

// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 15>;
Key key_of(const Matmul& product, size_t workspace_bytes);

// The same for all products that share a choice. Tokens come in ever new numbers, C's rows or, in a weight's gradient, k: eight
// ranges of them between one power of two and the next.
Key shared_key(const Matmul& product, size_t workspace_bytes);

// One of the library's objects.
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

// Made once for all products of one key. A row-major matrix is the transpose of a column-major one of the same stride, and
// Cᵀ = op(B)ᵀ · op(A)ᵀ: so the library gets B as its A and A as its B, with the same flags.
class Description {
 public:
  Description(const Functions& functions, Handle handle, const Matmul& product);

  // What the library would take, best first; nothing where it has nothing for this.
  std::vector<Heuristic> find(const Matmul& product, size_t workspace_bytes, int wanted) const;
  // An algorithm that was found for such a product before, if the library still takes it for this one.
  std::optional<Heuristic> restore(const Algorithm& algorithm, size_t workspace_bytes) const;
  // Queues the product into `to`, which is C or lies as C does. Whether the library took it.
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
  const void* bias_ = nullptr;  // what the operation has been told of
  bool valid_;
};

}  // namespace gigpo::cuda::cublaslt
