// Sums and scans over a warp or a block in a fixed order. All threads of the block must call; the block size is a multiple of 32.
#pragma once
#include <cstdint>

namespace gigpo::cuda {

constexpr unsigned full_warp = 0xFFFFFFFFu;

__device__ inline int lane_index() { return int(threadIdx.x) % 32; }
__device__ inline int warp_index() { return int(threadIdx.x) / 32; }
__device__ inline int warps_in_block() { return int(blockDim.x) / 32; }

// Sum over a warp, returned to every lane.
template <class T>
__device__ T warp_sum(T value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(full_warp, value, distance);
  return value;
}

// Sum over a block, returned to every thread.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T partial[32];
  value = warp_sum(value);
  __syncthreads();  // the last call's partial sums have been read
  if (lane_index() == 0) partial[warp_index()] = value;
  __syncthreads();
  T total = 0;
  for (int warp = 0; warp < warps_in_block(); warp++) total += partial[warp];
  return total;
}

// Exclusive scan: the sum of the values of all threads before this thread; `total` receives the sum of all values.
template <class T>
__device__ T block_scan(T value, T* total) {
  __shared__ T partial[32];
  T inclusive = value;
  for (int distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(full_warp, inclusive, distance);
    if (lane_index() >= distance) inclusive += other;
  }
  __syncthreads();  // the last call's partial sums have been read
  if (lane_index() == 31) partial[warp_index()] = inclusive;
  __syncthreads();
  T before = 0;
  *total = 0;
  for (int warp = 0; warp < warps_in_block(); warp++) {
    if (warp < warp_index()) before += partial[warp];
    *total += partial[warp];
  }
  return before + inclusive - value;
}

// Scan by one block: to[i] = sum of from[0 .. i), and to[count] the sum of all. `from` and `to` may be the same array
// if their types are the same.
template <class From, class To>
__device__ void scan_array(int64_t count, const From* from, To* to) {
  To carry = 0;
  for (int64_t start = 0; start < count; start += blockDim.x) {
    const int64_t i = start + threadIdx.x;
    To total;
    const To before = block_scan(i < count ? To(from[i]) : To(0), &total);
    if (i < count) to[i] = carry + before;
    carry += total;
  }
  if (threadIdx.x == 0) to[count] = carry;
}

}  // namespace gigpo::cuda
