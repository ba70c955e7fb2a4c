// Non-owning view of a matrix in device memory: pointer, type, shape.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace gigpo {

enum class Type : uint8_t { f32, bf16 };

constexpr int64_t bytes_of(Type type) { return type == Type::f32 ? 4 : 2; }

struct Tensor {
  void* data = nullptr;
  Type type = Type::f32;
  int64_t rows = 0, columns = 0;
  int64_t stride = 0;  // elements between the starts of adjacent rows; at least `columns`

  explicit operator bool() const { return data != nullptr; }

  // Pointers to the elements. Throw Error INTERNAL if the tensor has another type. bf16 values are encoded as in core/bf16.h.
  float* floats() const { return static_cast<float*>(of_type(Type::f32)); }
  uint16_t* halves() const { return static_cast<uint16_t*>(of_type(Type::bf16)); }

  Tensor row_range(int64_t first, int64_t count) const { return at(first * stride, count, columns); }
  Tensor column_range(int64_t first, int64_t count) const { return at(first, rows, count); }

  // View of a contiguous matrix in a flat buffer, from element `offset` on; empty if the buffer is empty.
  Tensor matrix(int64_t offset, int64_t new_rows, int64_t new_columns) const {
    if (!data) return {};
    Tensor result = at(offset, new_rows, new_columns);
    result.stride = new_columns;
    return result;
  }

 private:
  void* of_type(Type wanted) const {
    if (type == wanted) return data;
    throw Error("INTERNAL", wanted == Type::f32 ? "A matrix of bf16 is read as float32." : "A matrix of float32 is read as bf16.");
  }
  Tensor at(int64_t elements, int64_t new_rows, int64_t new_columns) const {
    return {static_cast<std::byte*>(data) + elements * bytes_of(type), type, new_rows, new_columns, stride};
  }
};

}  // namespace gigpo
