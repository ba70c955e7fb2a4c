// CUDA's short vector types, with the device's layout.
#pragma once

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

struct uint3 {
  unsigned x, y, z;
};

#define GIGPO_VECTORS(type, name, alignment2, alignment4)                                          \
  struct alignas(alignment2) name##2 {                                                             \
    type x, y;                                                                                     \
  };                                                                                               \
  struct alignas(alignment4) name##4 {                                                             \
    type x, y, z, w;                                                                               \
  };                                                                                               \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                 \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
GIGPO_VECTORS(int, int, 8, 16)
GIGPO_VECTORS(unsigned, uint, 8, 16)
GIGPO_VECTORS(float, float, 8, 16)
GIGPO_VECTORS(double, double, 16, 16)
GIGPO_VECTORS(long long, longlong, 16, 16)
GIGPO_VECTORS(unsigned short, ushort, 4, 8)
#undef GIGPO_VECTORS
