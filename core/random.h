// Counter-based random number generator Philox4x32-10 (Salmon et al., SC 2011). The numbers are the same as those of src/random.ts and of
// the CUDA device, so a sampled token depends only on its key and position, never on scheduling.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define GIGPO_HOST_DEVICE __host__ __device__
#else
#define GIGPO_HOST_DEVICE
#endif

namespace gigpo {

struct Key {
  uint32_t low = 0, high = 0;
};

struct Philox {
  uint32_t word[4];
};

GIGPO_HOST_DEVICE inline Philox philox(Key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ key.low, n2 = uint32_t(p0 >> 32) ^ c3 ^ key.high;
    c0 = n0, c1 = uint32_t(p1), c2 = n2, c3 = uint32_t(p0);
    key.low += 0x9E3779B9u, key.high += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform number in (0, 1), never 0 or 1, so that the logarithm is finite and negative. 23 bits; each value is exact in float.
GIGPO_HOST_DEVICE inline float open_uniform(uint32_t word) { return (float(word >> 9) + 0.5f) * 0x1p-23f; }

// Uniform number in (0, 1) with 32 bits, with finer resolution near 0, which decides the sampled token: -log(1 - v) is exponentially
// distributed, and the token with the smallest ratio of this number to its probability is sampled. A token of probability 1e-8 needs a
// number below 1e-8.
GIGPO_HOST_DEVICE inline float fine_uniform(uint32_t word) {
  const float v = (float(word) + 0.5f) * 0x1p-32f;
  return v < 1 - 0x1p-24f ? v : 1 - 0x1p-24f;  // a large word is rounded up to 2^32
}

}  // namespace gigpo
