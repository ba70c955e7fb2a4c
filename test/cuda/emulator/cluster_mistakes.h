// Stream of tiles that two blocks of a cluster fetch for each other: a correct version, and versions that omit one
// necessary step.
#pragma once
#include "test/cuda/emulator/asynchronous_mistakes.h"

namespace gigpo::cuda {

enum class ClusterLeftOut {
  nothing,
  release,     // a stage is filled once this block has released it, without the other block's release
  first_meet,  // the wait for the other block's barriers
  last_meet,   // the wait at the end for the other block's arrivals
  share,       // one of the two halves is not fetched
  whole,       // a block expects only the bytes of its own half
};

// D [64 · rank ...][128] = X[64 · rank ...] · Xᵀ, with X [128][64 · steps], in two stages: each block fetches 64 rows
// for both.
inline __global__ void __cluster_dims__(2, 1, 1) share_tiles(const __grid_constant__ CUtensorMap map, ClusterLeftOut left_out, float* d) {
  constexpr int stages = 2, stage_bytes = 128 * 128;
  char* const shared = dynamic_shared<char>();
  char* const memory = shared + (1024 - shared_address(shared) % 1024) % 1024;
  auto* const full = reinterpret_cast<uint64_t*>(memory + stages * stage_bytes);
  uint64_t* const empty = full + stages;
  const unsigned rank = cluster_rank();
  // Delays this block so that the other one is ahead.
  for (int i = 0; i < 100 && left_out == ClusterLeftOut::first_meet && rank == 1; i++) __syncwarp();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; stage++) {
      barrier_init(full + stage, 1);
      barrier_init(empty + stage, left_out == ClusterLeftOut::release ? 4 : 8);
    }
    fence_async_proxy();
  }
  if (left_out == ClusterLeftOut::first_meet) __syncthreads();
  else meet_cluster();
  if (threadIdx.x == 0) {
    for (int step = 0; step < streamed_steps; step++) {
      const int stage = step % stages;
      barrier_wait(empty + stage, step / stages % 2 ^ 1);
      barrier_expect(full + stage, left_out == ClusterLeftOut::whole ? stage_bytes / 2 : stage_bytes);
      char* const half = memory + stage * stage_bytes + int(rank) * stage_bytes / 2;
      if (left_out == ClusterLeftOut::share && rank == 1 && step == 3) continue;
      copy_tile_to_all(half, &map, 64 * step, 64 * int(rank), full + stage);
    }
  } else if (threadIdx.x >= 128) {
    float sums[64];
    for (int step = 0; step < streamed_steps; step++) {
      const int stage = step % stages;
      char* const tile = memory + stage * stage_bytes;
      barrier_wait(full + stage, step / stages % 2);
      wgmma_fence();
      for (int k = 0; k < 64; k += 16) {
        wgmma<128, false, false>(sums, matrix_descriptor(tile + int(rank) * stage_bytes / 2 + 2 * k, 16, 1024),
                                 matrix_descriptor(tile + 2 * k, 16, 1024), step > 0 || k > 0);
      }
      wgmma_commit();
      wgmma_wait<0>(sums);
      if (threadIdx.x % 32 != 0) continue;
      for (unsigned block = 0; block < 2; block++) {
        if (left_out != ClusterLeftOut::release || block == rank) barrier_arrive_at(empty + stage, block);
      }
    }
    const int warp = int(threadIdx.x) / 32 - 4, lane = int(threadIdx.x) % 32;
    float* const own = d + int(rank) * 64 * 128;
    for (int i = 0; i < 64; i++)
      own[(16 * warp + lane / 4 + i / 2 % 2 * 8) * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i];
  }
  if (left_out != ClusterLeftOut::last_meet) meet_cluster();
}

inline bool share_tiles_with(ClusterLeftOut left_out) {
  return streamed_product(64, 128, [&](const CUtensorMap& map, float* d) {
    emulator::Grid grid = 2;
    grid.cluster = 2;
    launch(share_tiles, grid, 256, 1024 + 2 * 128 * 128 + 64, nullptr, map, left_out, d);
  });
}

struct ClusterMistake {
  ClusterLeftOut left_out;
  const char* message;
};

constexpr ClusterMistake cluster_mistakes[] = {
    {ClusterLeftOut::release, "cp.async.bulk.tensor to"},  // an operand being read, or the target of another copy
    {ClusterLeftOut::first_meet, "mbarrier that"},
    {ClusterLeftOut::last_meet, "other blocks of its cluster access"},
    {ClusterLeftOut::share, "wait for each other"},
    {ClusterLeftOut::whole, "that were not expected"}};

}  // namespace gigpo::cuda
