// Wrappers of Hopper instructions (PTX ISA, sm_90a), as in cuda/ptx.cuh: barriers in shared memory (mbarrier), copies of tiles that arrive at
// these barriers (TMA), and the fence between the two proxies of shared memory: "generic" for reads and writes of C++, "async" for TMA and
// wgmma. test/cuda/emulator implements each function on the CPU.
#pragma once
#include <cuda.h>

#include "cuda/ptx.cuh"

namespace gigpo::cuda {

// Kernel attribute: blocks are launched in clusters of this size.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define GIGPO_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#else
#define GIGPO_CLUSTER(blocks)
#endif

#ifdef GIGPO_CUDA_EMULATOR

using emulator::barrier_arrive;
using emulator::barrier_arrive_at;
using emulator::barrier_expect;
using emulator::barrier_init;
using emulator::barrier_wait;
using emulator::cluster_rank;
using emulator::copy_tile;
using emulator::copy_tile_to_all;
using emulator::fence_async_proxy;
using emulator::meet_cluster;
using emulator::shared_address;

#else

// mbarrier: a phase ends when `arrivals` threads have arrived and all expected bytes have been copied; then the next
// phase begins. The first has parity 0. Eight bytes, aligned to 8.
__device__ inline void barrier_init(uint64_t* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ inline void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives, and adds `bytes` to those that must be copied before the phase ends.
__device__ inline void barrier_expect(uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Returns when the phase of this parity, the current or the previous one, has ended; its data can then be read.
__device__ inline void barrier_wait(uint64_t* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred ended;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n@!ended bra again;\n}" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Orders generic writes to shared memory that this thread has seen before its following async accesses; the
// initialisation of a barrier is such a write.
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copies the box of the map with corner (x, y), x along the rows, zeros outside of the matrix; called by one thread.
// Its lines are stored contiguously, with the 16-byte chunks of each 128 permuted by the line (swizzle). The bytes are
// counted at the barrier when all have arrived. `to` is a multiple of 128 bytes, and of 1,024 for wgmma.
__device__ inline void copy_tile(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}

// Rank of this block in its cluster (__cluster_dims__), and a barrier for all threads of the cluster. Earlier writes to
// shared memory, including initialised barriers, are visible to the other blocks afterwards. A block must call it
// before its end if others still copy to it or arrive at its barriers.
__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void meet_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// Arrives at the barrier at the same address in another block of the cluster. The default semantics (release at the scope of the block)
// suffice: readers wrote nothing, and their reads are over. With .release.cluster ptxas puts two GPU-wide memory barriers before each arrival.
__device__ inline void barrier_arrive_at(uint64_t* barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}
// copy_tile to the same address in both blocks of a cluster of two; the bytes are counted at the barrier of each block.
__device__ inline void copy_tile_to_all(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
          shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier)), "h"(uint16_t{3})
      : "memory");
}

#endif

// setmaxnreg, by all warps of a warpgroup: sets the number of registers of its threads to `count`. An increase waits until enough registers
// have been released.
template <int count>
__device__ void give_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
#ifndef GIGPO_CUDA_EMULATOR
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
#endif
}
template <int count>
__device__ void take_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
#ifndef GIGPO_CUDA_EMULATOR
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

}  // namespace gigpo::cuda
