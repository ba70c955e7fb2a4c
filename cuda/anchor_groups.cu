// Anchor groups of core/kernels/anchor_groups.h. A warp hashes a state, then claims or finds its group's slot in a
// table with open addressing. States share a group only if task, length and bytes are equal, so hash collisions do no
// harm. Which state owns a slot depends on timing; which states share a slot does not, and neither does the smallest
// index among them, from which the ids are derived.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/reduce.cuh"

namespace gigpo::cuda {

namespace {

constexpr int warps = 8, number_block = 1024;
constexpr int32_t empty = -1;

struct Hash {
  unsigned long long low, high;
};

struct States {
  const int32_t* tasks;
  const uint8_t* bytes;
  const int64_t* offsets;

  __device__ const uint8_t* data(int32_t i) const { return bytes + offsets[i]; }
  __device__ int64_t length(int32_t i) const { return offsets[i + 1] - offsets[i]; }
};

// Four bytes of a state starting at byte 4 · index, zeros beyond its end. Reads aligned words that contain at least one
// byte of the state.
__device__ uint32_t word_at(const uint8_t* state, int64_t length, int64_t index) {
  const int64_t at = 4 * index;
  const uintptr_t address = reinterpret_cast<uintptr_t>(state) + uintptr_t(at);
  const auto* words = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const unsigned skipped = unsigned(address & 3);
  const bool next = skipped != 0 && at + 4 - skipped < length;
  const uint32_t word = __funnelshift_r(words[0], next ? words[1] : 0, 8 * skipped);
  return length - at < 4 ? word & ((1u << 8 * unsigned(length - at)) - 1) : word;
}

__device__ unsigned long long mix(unsigned long long a, unsigned long long b) { return (a * b) ^ __umul64hi(a, b); }

// Hash of each state. Each lane chains its words through wide multiplications from its own seed; the lanes' results are
// xored.
__global__ void hash_states(int32_t count, States states, Hash* hashes, unsigned long long hash_mask) {
  const int64_t i = int64_t(blockIdx.x) * warps + warp_index();
  if (i >= count) return;  // a whole warp
  const uint8_t* state = states.data(int32_t(i));
  const int64_t length = states.length(int32_t(i));
  const auto lane = static_cast<unsigned long long>(lane_index() + 1);
  unsigned long long low = 0x9E3779B97F4A7C15ull * lane, high = 0xC2B2AE3D27D4EB4Full * lane;
  for (int64_t index = lane_index(); index < (length + 3) / 4; index += 32) {
    const uint32_t word = word_at(state, length, index);
    low = mix(low ^ word, 0xA0761D6478BD642Full);
    high = mix(high + word, 0xE7037ED1A0B428DBull ^ static_cast<unsigned long long>(index));
  }
  low = mix(low, lane ^ 0x8EBC6AF09C88C6E3ull);
  high = mix(high, lane ^ 0x589965CC75374CC3ull);
  for (int distance = 16; distance > 0; distance /= 2) {
    low ^= __shfl_xor_sync(full_warp, low, distance);
    high ^= __shfl_xor_sync(full_warp, high, distance);
  }
  if (lane_index() != 0) return;
  const unsigned long long task = static_cast<uint32_t>(states.tasks[i]);
  hashes[i].low = mix(low ^ 0x1D8E4E27C47D124Full, static_cast<unsigned long long>(length) ^ (task << 32)) & hash_mask;
  hashes[i].high = mix(high ^ task, low ^ 0xEB44ACCAB455D165ull) & hash_mask;
}

// Must be called by a whole warp; every lane gets the result.
__device__ bool same(const States& states, const Hash* hashes, int32_t a, int32_t b) {
  const int64_t length = states.length(a);
  if (hashes[a].low != hashes[b].low || hashes[a].high != hashes[b].high || states.tasks[a] != states.tasks[b] ||
      length != states.length(b))
    return false;
  const uint8_t *first = states.data(a), *second = states.data(b);
  const int64_t words = (length + 3) / 4;
  for (int64_t start = 0; start < words; start += 32) {
    const int64_t index = start + lane_index();
    const bool equal = index >= words || word_at(first, length, index) == word_at(second, length, index);
    if (!__all_sync(full_warp, equal)) return false;
  }
  return true;
}

// slots [mask + 1]: state that owns each slot. first [mask + 1]: smallest state index of the slot's group.
__global__ void insert_states(int32_t count, States states, const Hash* hashes, uint32_t mask, int32_t* slots,
                              int32_t* first, int32_t* slot_of) {
  const int64_t own = int64_t(blockIdx.x) * warps + warp_index();
  if (own >= count) return;  // a whole warp
  const auto i = int32_t(own);
  uint32_t slot = uint32_t(hashes[i].low) & mask;
  for (;; slot = (slot + 1) & mask) {  // terminates: at most half of the slots are ever taken
    int32_t owner = 0;
    if (lane_index() == 0) {
      owner = *static_cast<volatile int32_t*>(slots + slot);  // once taken, a slot never changes
      if (owner == empty) owner = atomicCAS(slots + slot, empty, i);
    }
    owner = __shfl_sync(full_warp, owner, 0);
    if (owner == empty || same(states, hashes, owner, i)) break;
  }
  if (lane_index() != 0) return;
  slot_of[i] = int32_t(slot);
  atomicMin(first + slot, i);
}

// Number of group-first states in each block, from which ids are assigned in the order of the groups' first states.
__global__ __launch_bounds__(number_block) void count_firsts(int32_t count, const int32_t* first,
                                                             const int32_t* slot_of, int32_t* block_counts) {
  const int64_t i = int64_t(blockIdx.x) * number_block + threadIdx.x;
  const int32_t total = block_sum(int32_t(i < count && first[slot_of[i]] == i));
  if (threadIdx.x == 0) block_counts[blockIdx.x] = total;
}

__global__ __launch_bounds__(number_block) void scan_counts(int32_t blocks, int32_t* block_counts,
                                                            int32_t* group_count) {
  scan_array(blocks, block_counts, block_counts);
  if (threadIdx.x == 0) *group_count = block_counts[blocks];
}

// Replaces the states in slots [] by ids: the table is no longer needed as a table.
__global__ __launch_bounds__(number_block) void number_firsts(int32_t count, const int32_t* first,
                                                              const int32_t* slot_of, const int32_t* block_counts,
                                                              int32_t* slots) {
  const int64_t i = int64_t(blockIdx.x) * number_block + threadIdx.x;
  const bool is_first = i < count && first[slot_of[i]] == i;
  int32_t total;
  const int32_t before = block_scan(int32_t(is_first), &total);
  if (is_first) slots[slot_of[i]] = block_counts[blockIdx.x] + before;
}

__global__ void write_groups(int32_t count, const int32_t* slots, const int32_t* slot_of, int32_t* groups) {
  const int64_t i = int64_t(blockIdx.x) * number_block + threadIdx.x;
  if (i < count) groups[i] = slots[slot_of[i]];
}

int32_t blocks_of(int32_t count, int32_t size) { return int32_t((int64_t(count) + size - 1) / size); }

struct Workspace {
  uint32_t capacity = 1;  // a power of two, at least twice the states
  Hash* hashes;            // [count]
  int32_t *slots, *first;  // [capacity]
  int32_t* slot_of;        // [count]
  int32_t* block_counts;   // [blocks + 1]
  size_t bytes;

  Workspace(void* memory, int32_t count) {
    while (capacity < 2 * uint32_t(count)) capacity *= 2;
    hashes = static_cast<Hash*>(memory);
    slots = reinterpret_cast<int32_t*>(hashes + count);
    first = slots + capacity;
    slot_of = first + capacity;
    block_counts = slot_of + count;
    const size_t words = 2 * size_t(capacity) + size_t(count) + size_t(blocks_of(count, number_block)) + 1;
    bytes = size_t(count) * sizeof(Hash) + words * sizeof(int32_t);
  }
};

}  // namespace

size_t anchor_groups_workspace(int32_t count) { return Workspace(nullptr, count > 0 ? count : 0).bytes; }

void group_anchors(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets, int32_t* groups,
                   int32_t* group_count, void* workspace, cudaStream_t stream, uint64_t hash_mask) {
  constexpr int32_t most = 1 << 30;  // the table is indexed by 32 bits
  if (count > most) throw Error("BAD_ARGUMENT", "at most 2^30 states can be grouped at once");
  if (count <= 0) {
    CUDA_CHECK(cudaMemsetAsync(group_count, 0, sizeof(int32_t), stream));
    return;
  }
  const Workspace w(workspace, count);
  const States states{tasks, bytes, offsets};
  const int32_t warp_blocks = blocks_of(count, warps), blocks = blocks_of(count, number_block);
  CUDA_CHECK(cudaMemsetAsync(w.slots, 0xFF, w.capacity * sizeof(int32_t), stream));  // empty
  CUDA_CHECK(cudaMemsetAsync(w.first, 0x7F, w.capacity * sizeof(int32_t), stream));  // above any index
  launch(hash_states, warp_blocks, 32 * warps, 0, stream, count, states, w.hashes, hash_mask);
  launch(insert_states, warp_blocks, 32 * warps, 0, stream, count, states, w.hashes, w.capacity - 1, w.slots, w.first,
         w.slot_of);
  launch(count_firsts, blocks, number_block, 0, stream, count, w.first, w.slot_of, w.block_counts);
  launch(scan_counts, 1, number_block, 0, stream, blocks, w.block_counts, group_count);
  launch(number_firsts, blocks, number_block, 0, stream, count, w.first, w.slot_of, w.block_counts, w.slots);
  launch(write_groups, blocks, number_block, 0, stream, count, w.slots, w.slot_of, groups);
}

}  // namespace gigpo::cuda
