#include "cuda/cublaslt_product.h"

#include <bit>

namespace gigpo::cuda::cublaslt {

uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return uint32_t(address & (~address + 1));
}

Key key_of(const Matmul& p, size_t workspace_bytes) {
  const int64_t flags = int64_t(p.transpose_a) | int64_t(p.transpose_b) << 1 | int64_t(p.bias.data != nullptr) << 2 |
                        int64_t(p.added.data != nullptr) << 3 | int64_t(p.added.data == p.c.data) << 4 |
                        int64_t(p.a.type) << 5 | int64_t(p.c.type) << 6;
  return {p.m(), p.n(), p.k(), p.a.stride, p.b.stride, p.c.stride, p.added ? p.added.stride : p.c.stride, flags,
          alignment_of(p.a.data), alignment_of(p.b.data), alignment_of(p.c.data),
          alignment_of(p.added ? p.added.data : p.c.data), alignment_of(p.bias.data), int64_t(workspace_bytes), p.multiprocessors};
}

Key shared_key(const Matmul& p, size_t workspace_bytes) {
  Key key = key_of(p, workspace_bytes);
  int64_t& tokens = key[p.transpose_a ? 2 : 0];
  const int bits = std::bit_width(uint64_t(tokens - 1));
  const int64_t step = int64_t{1} << (bits > 4 ? bits - 4 : 0);
  tokens = (tokens + step - 1) / step * step;
  return key;
}

Description::Description(const Functions& f, Handle handle, const Matmul& p)
    : f_(f), handle_(handle), operation_(f.operation_destroy, f.operation_create, compute_f32, real_f32),
      a_(f.layout_destroy, f.layout_create, type_number(p.b.type), uint64_t(p.b.columns), uint64_t(p.b.rows), p.b.stride),
      b_(f.layout_destroy, f.layout_create, type_number(p.a.type), uint64_t(p.a.columns), uint64_t(p.a.rows), p.a.stride),
      c_(f.layout_destroy, f.layout_create, type_number(p.c.type), uint64_t(p.n()), uint64_t(p.m()),
         p.added ? p.added.stride : p.c.stride),
      d_(f.layout_destroy, f.layout_create, type_number(p.c.type), uint64_t(p.n()), uint64_t(p.m()), p.c.stride),
      bias_(p.bias.data) {
  const int32_t transpose_a = p.transpose_b ? transposed : as_it_is, transpose_b = p.transpose_a ? transposed : as_it_is;
  valid_ = operation_.object && a_.object && b_.object && c_.object && d_.object &&
           set(operation_transpose_a, transpose_a) && set(operation_transpose_b, transpose_b) &&
           set(operation_epilogue, p.bias ? epilogue_bias : epilogue_plain) &&
           (p.multiprocessors == 0 || set(operation_multiprocessors, int32_t(p.multiprocessors))) &&
           (!p.bias || (set(operation_bias_pointer, bias_) && set(operation_bias_type, int32_t(type_number(p.bias.type)))));
}

std::vector<Heuristic> Description::find(const Matmul& p, size_t workspace_bytes, int wanted) const {
  if (!valid_) return {};
  const Object<Preference> preference(f_.preference_destroy, f_.preference_create);
  bool valid = preference.object != nullptr;
  const auto prefer = [&](int attribute, auto value) {
    valid = valid && f_.preference_set(preference.object, attribute, &value, sizeof value) == success;
  };
  prefer(preference_workspace_bytes, uint64_t(workspace_bytes));
  prefer(preference_reductions, reduction_in_compute_type);
  const void* const pointers[] = {p.b.data, p.a.data, p.added ? p.added.data : p.c.data, p.c.data};
  for (int i = 0; i < 4; i++) prefer(preference_alignment_a + i, alignment_of(pointers[i]));
  std::vector<Heuristic> found(static_cast<size_t>(wanted));
  int count = 0;
  if (!valid || f_.find(handle_, operation_.object, a_.object, b_.object, c_.object, d_.object, preference.object, wanted,
                        found.data(), &count) != success)
    return {};
  found.resize(size_t(count));
  std::erase_if(found, [&](const Heuristic& h) { return h.status != success || h.workspace_bytes > workspace_bytes; });
  return found;
}

std::optional<Heuristic> Description::restore(const Algorithm& algorithm, size_t workspace_bytes) const {
  Heuristic checked = {};
  if (!valid_ || f_.check(handle_, operation_.object, a_.object, b_.object, c_.object, d_.object, &algorithm, &checked) != success)
    return std::nullopt;
  if (checked.workspace_bytes > workspace_bytes) return std::nullopt;
  checked.algorithm = algorithm;  // the library fills in only some fields of the result
  return checked;
}

bool Description::multiply(const Matmul& p, void* to, const Heuristic& chosen, void* workspace, cudaStream_t stream) {
  if (p.bias.data != bias_ && !set(operation_bias_pointer, static_cast<const void*>(p.bias.data))) return false;
  bias_ = p.bias.data;
  const float alpha = p.factor, beta = p.added ? 1 : 0;
  return f_.multiply(handle_, operation_.object, &alpha, p.b.data, a_.object, p.a.data, b_.object, &beta,
                     p.added ? p.added.data : to, c_.object, to, d_.object, &chosen.algorithm, workspace,
                     chosen.workspace_bytes, stream) == success;
}

}  // namespace gigpo::cuda::cublaslt
