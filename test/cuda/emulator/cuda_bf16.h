// bf16 in registers: conversions only, because the kernels compute in fp32. No implicit conversion and no arithmetic,
// so that no rounding is hidden.
#pragma once
#include <cstdint>
#include <cstring>

#include "cuda_runtime_api.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }

inline float __bfloat162float(__nv_bfloat16 value) {
  const uint32_t bits = uint32_t(value.bits) << 16;
  float widened;
  std::memcpy(&widened, &bits, sizeof bits);
  return widened;
}

// Rounds to nearest, ties to even. Every NaN becomes the canonical one of the hardware.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return {0x7FFF};
  return {static_cast<unsigned short>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 pair) { return {__bfloat162float(pair.x), __bfloat162float(pair.y)}; }
inline float __low2float(__nv_bfloat162 pair) { return __bfloat162float(pair.x); }
inline float __high2float(__nv_bfloat162 pair) { return __bfloat162float(pair.y); }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair) { return pair.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair) { return pair.y; }
