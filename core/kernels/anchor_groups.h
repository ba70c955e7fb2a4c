// Anchor-state grouping: assigns the steps of a task that were taken in the same state to one group (GiGPO, arXiv 2505.10978, eq. 6).
// States are byte strings; equal (task, bytes) get equal ids. A 128-bit hash finds candidates and a byte comparison decides, so hash
// collisions cost time but never merge two states.
#pragma once
#include <cstdint>

namespace gigpo {

struct Hash128 {
  uint64_t low, high;
};

// Non-cryptographic hash function. Each `seed` gives an independent function.
Hash128 hash128(const uint8_t* bytes, int64_t length, uint64_t seed);

using AnchorHash = Hash128 (*)(const uint8_t* bytes, int64_t length, uint64_t seed);

// Groups equal states per task. State i is bytes[offsets[i] .. offsets[i + 1]) of task tasks[i]; offsets [count + 1] are non-decreasing.
// groups [count] receives dense ids in the order of the first occurrence in the whole input. Returns the number of groups. The result
// depends neither on `threads` (large inputs distribute their tasks over at most this number) nor on the hash (tests pass weak ones).
int32_t group_anchors(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                      int32_t* groups, int threads = 1, AnchorHash hash = hash128);

// Like group_anchors, computed on a CUDA device; all arrays are in host memory. Throws Error DEVICE_UNAVAILABLE.
int32_t group_anchors_on_cuda(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                              int32_t* groups);

}  // namespace gigpo
