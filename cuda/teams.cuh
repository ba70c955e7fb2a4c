// Teams of threads that hold a group of a row's columns in registers between a pass that sums and one that writes, so
// that each element is read once. A team is part of a warp or a whole block, whichever is enough.
#pragma once
#include "core/error.h"
#include "cuda/reduce.cuh"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

constexpr int held_packs = 4;        // packs of a thread that stay in registers
constexpr int shared_block = 256;    // threads of a block with several teams
constexpr int smallest_block = 128;  // and of a block that is one team
constexpr int largest_block = 512;

// Threads that share a group: 8 or 32 lanes, or a block, which may hold the whole group or only part of it.
constexpr int whole_block = 0, block_with_rest = -1;

// Packs that a thread of the team holds: fewer if others pass through its registers too.
template <int lanes>
constexpr int held_by = lanes == block_with_rest ? held_packs / 2 : held_packs;

template <int lanes>
struct Team {
  static __device__ int size() { return lanes > 0 ? lanes : int(blockDim.x); }
  static __device__ int teams() { return int(blockDim.x) / size(); }
  static __device__ int index() { return int(threadIdx.x) / size(); }
  static __device__ int rank() { return int(threadIdx.x) % size(); }

  // Sum over the team, returned to each of its threads; must be called by all threads of the block.
  static __device__ float sum(float value) {
    if constexpr (lanes <= 0) {
      return block_sum(value);
    } else {
#pragma unroll
      for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(full_warp, value, distance);
      return value;
    }
  }
};

// Groups of the matrix, counted row by row; fewer than 2³², because a 64-bit division takes several times as long.
struct RowGroups {
  RowGroups(const Tensor& x, int64_t groups) : count(x.rows * groups), per_row(int(groups)), size(int(x.columns / groups)) {
    if (count >> 32 != 0) throw Error("BAD_ARGUMENT", std::to_string(count) + " groups to normalise: train fewer tokens at once.");
  }

  int64_t count;
  int per_row, size;
  __device__ int64_t offset(int64_t group, int64_t stride) const {
    if (per_row == 1) return group * stride;
    const int64_t row = uint32_t(group) / uint32_t(per_row);
    return row * stride + (group - row * per_row) * size;
  }
};

// First pack that a thread does not hold in registers.
template <int lanes>
__device__ int rest_from(int rank, int step, int packs) {
  return lanes == block_with_rest ? rank + held_by<lanes> * step : packs;
}

// The smallest team that holds a group in registers, and the number of groups per block.
struct TeamPlan {
  explicit TeamPlan(int64_t packs) {
    while (lanes < largest_block && lanes * held_packs < packs) lanes *= lanes == 8 ? 4 : 2;
    threads = lanes <= 32 ? shared_block : std::max(lanes, smallest_block);
    if (lanes <= 32) teams = threads / lanes;
    holds_all = lanes * held_packs >= packs;
  }
  int lanes = 8, threads = 0, teams = 1;
  bool holds_all = true;
};

// Calls body(std::integral_constant<int, lanes>()), with lanes as in Team.
template <class Body>
void with_team(const TeamPlan& plan, Body body) {
  if (plan.lanes == 8) body(std::integral_constant<int, 8>());
  else if (plan.lanes == 32) body(std::integral_constant<int, 32>());
  else if (plan.holds_all) body(std::integral_constant<int, whole_block>());
  else body(std::integral_constant<int, block_with_rest>());
}

inline bool is_aligned(const Tensor& weight) { return reinterpret_cast<uintptr_t>(weight.data) % 16 == 0; }

}  // namespace gigpo::cuda
