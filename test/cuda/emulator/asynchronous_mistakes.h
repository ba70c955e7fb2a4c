// Stream of tiles through shared memory into wgmma: a correct version, and versions that omit one necessary step
// (mistakes_test.cu).
#pragma once
#include <cmath>

#include "cuda/launch.h"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "test/cuda/emulator/array.h"

namespace gigpo::cuda {

enum class LeftOut {
  nothing,
  fence,             // before the first product
  wait,              // before a stage is released and the sums are read
  last_wait,         // likewise, at the last stage
  early_read,        // likewise, with a wait later
  early_write,       // of sums in progress
  commit,            // of a group
  release,           // of a stage, before its products have been waited for
  space,             // a stage is filled without waiting for its release
  expected_bytes,    // of the copies
  arrival,           // the wait for the copies
  barrier_fence,     // after the barriers were initialised
  barriers,          // are not initialised
  write_fence,       // after a generic write to an operand
  last_copy,         // the wait for an additional copy
  second_warp,       // one of the warps does not release the stage
};

// D [64][128] = X[0:64] · Xᵀ, with X [128][64 · steps], in two stages. 256 threads: a producer, and a warpgroup.
constexpr int streamed_steps = 8;
inline __global__ void stream_tiles(const __grid_constant__ CUtensorMap map, LeftOut left_out, float* d) {
  constexpr int stages = 2, stage_bytes = 128 * 128;
  char* const shared = dynamic_shared<char>();
  char* const memory = shared + (1024 - shared_address(shared) % 1024) % 1024;
  auto* const full = reinterpret_cast<uint64_t*>(memory + stages * stage_bytes);
  uint64_t* const empty = full + stages;
  if (threadIdx.x == 0 && left_out != LeftOut::barriers) {
    for (int stage = 0; stage < stages; stage++) {
      barrier_init(full + stage, 1);
      barrier_init(empty + stage, 4);
    }
    if (left_out != LeftOut::barrier_fence) fence_async_proxy();
  }
  __syncthreads();
  const int steps = streamed_steps + (left_out == LeftOut::last_copy);
  if (threadIdx.x == 0) {
    for (int step = 0; step < steps; step++) {
      const int stage = step % stages;
      if (left_out != LeftOut::space) barrier_wait(empty + stage, step / stages % 2 ^ 1);
      if (left_out == LeftOut::expected_bytes) barrier_arrive(full + stage);
      else barrier_expect(full + stage, stage_bytes);
      copy_tile(memory + stage * stage_bytes, &map, 64 * step, 0, full + stage);
    }
  }
  if (threadIdx.x < 128) return;
  float sums[64], read[64];
  for (int step = 0; step < streamed_steps; step++) {
    const int stage = step % stages;
    char* const tile = memory + stage * stage_bytes;
    const auto leave = [&] {
      const bool missing = left_out == LeftOut::second_warp && threadIdx.x / 32 == 5;
      if (threadIdx.x % 32 == 0 && !missing) barrier_arrive(empty + stage);
    };
    if (left_out != LeftOut::arrival) barrier_wait(full + stage, step / stages % 2);
    if (left_out == LeftOut::write_fence) reinterpret_cast<uint16_t*>(tile)[threadIdx.x] = 0;
    if (left_out != LeftOut::fence) wgmma_fence();
    for (int k = 0; k < 64; k += 16) {
      const uint64_t descriptor = matrix_descriptor(tile + 2 * k, 16, 1024);
      wgmma<128, false, false>(sums, descriptor, descriptor, step > 0 || k > 0);
    }
    if (left_out != LeftOut::commit) wgmma_commit();
    if (left_out == LeftOut::early_write) sums[3] = 0;
    for (int i = 0; i < 64; i++) read[i] = sums[i];
    if (left_out == LeftOut::release) leave();
    const bool last = step == streamed_steps - 1;
    if (left_out != LeftOut::wait && !(left_out == LeftOut::last_wait && last)) wgmma_wait<0>(sums);
    if (left_out != LeftOut::release) leave();
  }
  if (left_out != LeftOut::early_read)
    for (int i = 0; i < 64; i++) read[i] = sums[i];
  const int warp = int(threadIdx.x) / 32 - 4, lane = int(threadIdx.x) % 32;
  for (int i = 0; i < 64; i++) d[(16 * warp + lane / 4 + i / 2 % 2 * 8) * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2] = read[i];
}

// Whether launch_with(map, d), with boxes of `lines` rows, computes D [rows][128] = X[0:rows] · Xᵀ.
template <class LaunchWith>
bool streamed_product(int lines, int rows, const LaunchWith& launch_with) {
  constexpr int columns = 64 * streamed_steps;
  const emulator::Array<uint16_t> x(128 * columns);
  const emulator::Array<float> d(size_t(rows * 128));
  const auto value = [](int i, int j) { return float((i * 7 + j * 5 + i * j) % 9 - 4); };
  for (int i = 0; i < 128; i++)
    for (int j = 0; j < columns; j++) x[size_t(i * columns + j)] = __bfloat16_as_ushort(__float2bfloat16_rn(value(i, j)));
  CUtensorMap map;
  if (!map_tiles({x.data, Type::bf16, 128, columns, columns}, lines, &map)) return false;
  launch_with(map, d.data);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < 128; j++) {
      float sum = 0;
      for (int k = 0; k < columns; k++) sum += value(i, k) * value(j, k);
      if (d[size_t(i * 128 + j)] != sum) return false;
    }
  return true;
}

inline bool stream_tiles_with(LeftOut left_out) {
  return streamed_product(128, 64, [&](const CUtensorMap& map, float* d) {
    launch(stream_tiles, 1, 256, 1024 + 2 * 128 * 128 + 64, nullptr, map, left_out, d);
  });
}

struct AsynchronousMistake {
  LeftOut left_out;
  const char* message;
};

constexpr AsynchronousMistake asynchronous_mistakes[] = {
    {LeftOut::fence, "without wgmma.fence"},
    {LeftOut::wait, "operands of a wgmma that was not waited for"},
    {LeftOut::last_wait, "a thread ends while a wgmma"},
    {LeftOut::early_read, "the result is wrong"},
    {LeftOut::early_write, "were written before wgmma.wait_group"},
    {LeftOut::commit, "operands of a wgmma that was not waited for"},
    {LeftOut::release, "operands of a wgmma that was not waited for"},
    {LeftOut::space, "more arrivals in a phase"},
    {LeftOut::expected_bytes, "a bulk copy brought"},
    {LeftOut::arrival, "wgmma reads"},
    {LeftOut::barrier_fence, "initialised without fence.proxy.async"},
    {LeftOut::barriers, "that was not initialised"},
    {LeftOut::write_fence, "written without fence.proxy.async"},
    {LeftOut::last_copy, "a block ends while bulk copies"},
    {LeftOut::second_warp, "wait for each other"}};

}  // namespace gigpo::cuda
