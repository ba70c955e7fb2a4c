// core/cpu/amx_tiles.h without AMX: tiles in memory, and sums as that file says, step by step.
#pragma once
#include <stdint.h>
#include <string.h>

namespace gigpo::cpu::GIGPO_ISA_NAME {

struct TileConfiguration {};

// A tile that is read before anything was written to it, or after a release, holds NaN: the hardware would raise an exception.
struct EmulatedTiles {
  EmulatedTiles() { memset(words, 0xff, sizeof words); }
  uint32_t words[8][16][16];
};
static thread_local EmulatedTiles emulated;

static inline void configure_tiles(const TileConfiguration&) { emulated = {}; }
static inline void release_tiles() { emulated = {}; }

template <int tile>
static inline void clear_tile() {
  memset(emulated.words[tile], 0, sizeof emulated.words[tile]);
}

template <int tile>
static inline void load_tile(const uint32_t* from, int64_t step) {
  for (int row = 0; row < 16; row++) memcpy(emulated.words[tile][row], from + row * step, sizeof emulated.words[tile][row]);
}

template <int tile>
static inline void store_tile(float* to, int64_t step) {
  for (int row = 0; row < 16; row++) memcpy(to + row * step, emulated.words[tile][row], sizeof emulated.words[tile][row]);
}

// The float with these bits, or 0 of its sign if subnormal.
static inline float flushed(uint32_t bits) {
  if ((bits & 0x7f800000) == 0) bits &= 0x80000000;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float flushed(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return flushed(bits);
}

template <int sum, int a, int b>
static inline void multiply_tiles() {
  for (int row = 0; row < 16; row++) {
    float first[16] = {}, second[16] = {};
    for (int pair = 0; pair < 16; pair++) {
      const uint32_t left = emulated.words[a][row][pair];
      for (int column = 0; column < 16; column++) {
        const uint32_t right = emulated.words[b][pair][column];
        first[column] = flushed(__builtin_fmaf(flushed(left << 16), flushed(right << 16), first[column]));
        second[column] = flushed(__builtin_fmaf(flushed(left & 0xffff0000), flushed(right & 0xffff0000), second[column]));
      }
    }
    for (int column = 0; column < 16; column++) {
      uint32_t& word = emulated.words[sum][row][column];
      const float result = flushed(flushed(word) + flushed(first[column] + second[column]));
      memcpy(&word, &result, sizeof word);
    }
  }
}

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
