// Anchor states: which steps of a task stood in the same state (GiGPO, arXiv 2505.10978, eq. 6). States are bytes;
// equal (task, bytes) get equal ids. A 128-bit hash finds candidates and a byte comparison decides, so a collision of
// the hash costs time and never merges two states.
#pragma once
#include <cstdint>

namespace gigpo {

struct Hash128 {
  uint64_t low, high;
};

// Not cryptographic. `seed` gives an independent function for each value.
Hash128 hash128(const uint8_t* bytes, int64_t length, uint64_t seed);

using AnchorHash = Hash128 (*)(const uint8_t* bytes, int64_t length, uint64_t seed);

// State i is bytes[offsets[i] .. offsets[i + 1]) of tasks[i]; offsets [count + 1] never decrease. groups [count]
// receives dense ids in the order in which groups first occur over the whole input. Returns the number of groups.
// The answer depends neither on `threads` (large inputs spread their tasks over up to that many) nor on the hash (tests
// pass weak ones).
int32_t group_anchors(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                      int32_t* groups, int threads = 1, AnchorHash hash = hash128);

// The same answer from a CUDA device; the bytes travel there and the groups back. Throws Error DEVICE_UNAVAILABLE.
int32_t group_anchors_on_cuda(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                              int32_t* groups);

}  // namespace gigpo
