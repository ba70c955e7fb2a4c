// Conformance of the emulator with CUDA and the PTX ISA.
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "cuda/launch.h"
#include "cuda/ptx.cuh"
#include "test/core/check.h"
#include "test/cuda/emulator/array.h"

using namespace gigpo::cuda;
using emulator::Array;

namespace {

constexpr unsigned full = 0xFFFFFFFFu;

#ifdef __SANITIZE_ADDRESS__
constexpr bool fills_static = false;
#else
constexpr bool fills_static = true;
#endif

// --- threads, warps and blocks ---

__global__ void write_indices(int* to) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] += int(100 * block + thread) + 2;  // 0xFF is -1
}

void grids_and_blocks() {
  const Array<int> found(24 * 30);
  launch(write_indices, dim3(2, 3, 4), dim3(5, 3, 2), 0, nullptr, found.data);
  for (int i = 0; i < 24 * 30; i++) CHECK(found[size_t(i)] == 100 * (i / 30) + i % 30 + 1);
  CHECK_THROWS(launch(write_indices, 1, 1025, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, 0, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 0, 32, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, dim3(1, 1, 65), 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, dim3(1, 65536), 32, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, 32, (227 << 10) + 1, nullptr, found.data), "INTERNAL");
}

template <class T>
__global__ void shuffle_all(T* to, int width) {
  const int lane = int(threadIdx.x % 32);
  const T own = T(1000 + threadIdx.x);
  T* at = to + threadIdx.x * 128;
  for (int i = 0; i < 32; i++) {
    at[i] = __shfl_sync(full, own, i, width);
    at[32 + i] = __shfl_up_sync(full, own, unsigned(i), width);
    at[64 + i] = __shfl_down_sync(full, own, unsigned(i), width);
    at[96 + i] = __shfl_xor_sync(full, own, i, width);
  }
  if (lane < 8) at[0] = __shfl_sync(0xFFu, own, 3, 8);
  else at[0] = own;
}

template <class T>
void shuffles_of() {
  for (int width = 1; width <= 32; width *= 2) {
    const Array<T> found(64 * 128);
    launch(shuffle_all<T>, 1, 64, 0, nullptr, found.data, width);
    for (int thread = 0; thread < 64; thread++)
      for (int i = 0; i < 32; i++) {
        const int lane = thread % 32, base = 1000 + thread - lane, first = lane / width * width, last = first + width - 1;
        const T* at = found.data + thread * 128;
        if (i > 0) CHECK(at[i] == T(base + first + i % width));
        CHECK(at[32 + i] == T(base + (lane - i < first ? lane : lane - i)));
        CHECK(at[64 + i] == T(base + (lane + i > last ? lane : lane + i)));
        CHECK(at[96 + i] == T(base + ((lane ^ i) > last ? lane : lane ^ i)));
        CHECK(at[0] == T(base + (lane < 8 ? 3 : lane)));
      }
  }
}

void shuffles() {
  shuffles_of<int>();
  shuffles_of<unsigned>();
  shuffles_of<float>();
  shuffles_of<double>();
  shuffles_of<long long>();
}

__global__ void vote(unsigned* to) {
  const bool odd = threadIdx.x % 2 == 1;
  unsigned* at = to + threadIdx.x * 8;
  at[0] = __ballot_sync(full, odd);
  at[1] = unsigned(__all_sync(full, odd)) * 2 + unsigned(__any_sync(full, odd));
  if (odd) at[2] = unsigned(__all_sync(0xAAAAAAAAu, odd));
  else at[2] = unsigned(__any_sync(0x55555555u, odd));
  at[3] = unsigned(__syncthreads_count(odd));
  at[4] = unsigned(__syncthreads_or(threadIdx.x == 63)) * 2 + unsigned(__syncthreads_and(threadIdx.x != 63));
  if (threadIdx.x >= 40) return;  // the others continue without these
  at[5] = unsigned(__syncthreads_count(1));
  if (threadIdx.x >= 32) at[6] = __ballot_sync(0xFFu, threadIdx.x != 32);
}

void votes() {
  const Array<unsigned> found(64 * 8);
  launch(vote, 1, 64, 0, nullptr, found.data);
  for (size_t i = 0; i < 64; i++) {
    const unsigned* at = found.data + i * 8;
    CHECK(at[0] == 0xAAAAAAAAu && at[1] == 1 && at[2] == i % 2 && at[3] == 32 && at[4] == 2);
    if (i < 40) CHECK(at[5] == 40);
    if (i >= 32 && i < 40) CHECK(at[6] == 0xFEu);
  }
}

__global__ void count_in_order(int* counter, int* order) { order[threadIdx.x] = atomicAdd(counter, 1); }

void test_random_order() {
  std::vector<std::vector<int>> orders;
  for (int i = 0; i < 2; i++) {
    const Array<int> counter(1), order(64);
    counter[0] = 0;
    launch(count_in_order, 1, 64, 0, nullptr, counter.data, order.data);
    orders.emplace_back(order.data, order.data + 64);
    CHECK(counter[0] == 64);
  }
  CHECK(orders[0] != orders[1]);
}

__global__ void look_at_shared(unsigned* to) {
  __shared__ unsigned fixed[8];
  unsigned* dynamic = dynamic_shared<unsigned>();
  if (threadIdx.x == 0) {
    to[2 * blockIdx.x] = fixed[5];
    to[2 * blockIdx.x + 1] = dynamic[99];
    fixed[5] = dynamic[99] = 0;
  }
}

thread_local int kept = 23;

void test_shared_memory_is_fresh() {
  const Array<unsigned> found(8);
  kept++;
  launch(look_at_shared, 4, 32, 400, nullptr, found.data);
  for (size_t i = 0; i < 8; i++) CHECK((!fills_static && i % 2 == 0) || found[i] == full);
  CHECK(kept == 24);
}

// --- instructions ---

// D [16][8] = A [16][16] · B [16][8], through shared memory.
__global__ void multiply(const uint16_t* a, const uint16_t* b, const uint16_t* b_transposed, float* d) {
  auto* rows = dynamic_shared<uint16_t>();
  const int lane = int(threadIdx.x);
  for (int i = lane; i < 256; i += 32) rows[i] = a[i];
  for (int i = lane; i < 128; i += 32) rows[256 + i] = b[i], rows[384 + i] = b_transposed[i];
  __syncwarp();
  uint32_t left[4], right[2], right_again[2], left_again[4];
  load_matrices(left, rows + (lane % 16) * 16 + lane / 16 * 8);
  load_matrices_transposed(right, rows + 256 + (lane % 16) * 8);
  load_matrices(right_again, rows + 384 + lane % 8 * 16 + lane / 8 % 2 * 8);
  load_matrices_transposed(left_again, rows + (lane % 16) * 16 + lane / 16 * 8);
  float sums[4] = {1, 2, 3, 4};
  multiply_add(sums, left, right);
  for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = sums[i];
  d[128 + lane] = float(right[0] == right_again[0] && right[1] == right_again[1]);
  for (int i = 0; i < 4; i++) d[160 + 4 * lane + i] = float(left_again[i] & 0xFFFF);
}

void matrices() {
  const Array<uint16_t> a(256), b(128), b_transposed(128);
  const Array<float> d(288);
  const auto value = [](uint32_t i) { return float(int(gigpo::philox({4, 4}, i, 0, 0, 0).word[0] % 65) - 32) / 8; };
  for (uint32_t i = 0; i < 256; i++) a[i] = __bfloat16_as_ushort(__float2bfloat16_rn(value(i)));
  for (uint32_t k = 0; k < 16; k++)
    for (uint32_t n = 0; n < 8; n++)
      b[k * 8 + n] = b_transposed[n * 16 + k] = __bfloat16_as_ushort(__float2bfloat16_rn(value(1000 + k * 8 + n)));
  launch(multiply, 1, 32, 1024, nullptr, a.data, b.data, b_transposed.data, d.data);
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t n = 0; n < 8; n++) {
      float sum = float(1 + n % 2 + 2 * (m / 8));
      for (uint32_t k = 0; k < 16; k++) sum += value(m * 16 + k) * value(1000 + k * 8 + n);
      CHECK(d[m * 8 + n] == sum, "%g, not %g", d[m * 8 + n], sum);
    }
  for (size_t lane = 0; lane < 32; lane++) {
    CHECK(d[128 + lane] == 1);
    for (size_t i = 0; i < 4; i++)  // element (l / 4, 2 (l % 4)) of the transposed matrix i
      CHECK(d[160 + 4 * lane + i] == float(a[(2 * (lane % 4) + i % 2 * 8) * 16 + lane / 4 + i / 2 * 8]));
  }
}

__global__ void copy_groups(const uint32_t* from, uint32_t* to) {
  auto* shared = dynamic_shared<uint32_t>();
  const auto look = [&](int step) {
    for (int group = 0; group < 4; group++) to[step * 4 + group] = shared[4 * group + 3];
  };
  for (int group = 0; group < 3; group++) {
    copy_async_16(shared + 4 * group, from + 4 * group, group != 1);
    copy_async_commit();
  }
  copy_async_16(shared + 12, from + 12, true);
  look(0);
  copy_async_wait<2>();
  look(1);
  copy_async_wait<0>();
  look(2);
  copy_async_commit();
  copy_async_wait<0>();
  look(3);
}

void asynchronous_copies() {
  const Array<uint32_t> from(16), found(16);
  for (uint32_t i = 0; i < 16; i++) from[i] = i;
  launch(copy_groups, 1, 1, 64, nullptr, from.data, found.data);
  const uint32_t expected[16] = {full, full, full, full, 3, full, full, full, 3, 0, 11, full, 3, 0, 11, 15};
  for (size_t i = 0; i < 16; i++) CHECK(found[i] == expected[i], "step %d, group %d: %#x", int(i / 4), int(i % 4), found[i]);
}

void numbers() {
  for (uint32_t i = 0; i < 100000; i++) {
    const uint32_t bits = gigpo::philox({1, 2}, i, 0, 0, 0).word[0];
    const float x = __uint_as_float(i < 8 ? 0x3F800000u + i * 0x8000u : bits);  // the first are ties
    const float y = __bfloat162float(__float2bfloat16_rn(x));
    if (std::isnan(x)) {
      CHECK(std::isnan(y));
      continue;
    }
    const uint16_t down = uint16_t(__float_as_uint(x) >> 16);
    const float low = __bfloat162float(__ushort_as_bfloat16(down));
    const float high = __bfloat162float(__ushort_as_bfloat16(uint16_t(down + 1)));
    const double beyond = std::isinf(high) ? std::copysign(0x1p128, x) : double(high);
    const double to_low = std::abs(double(x) - low), to_high = std::abs(beyond - x);
    const bool takes_low = std::isinf(x) || to_low < to_high || (to_low == to_high && down % 2 == 0);
    CHECK(y == (takes_low ? low : high), "%a became %a", x, y);
  }
  CHECK(pack_bf16(1, -2) == 0xC0003F80u);
  CHECK(__funnelshift_r(0x89ABCDEFu, 0x01234567u, 8) == 0x6789ABCDu);
  CHECK(__funnelshift_l(0x89ABCDEFu, 0x01234567u, 8) == 0x23456789u);
  CHECK(__umulhi(0xFFFFFFFFu, 0xFFFFFFFFu) == 0xFFFFFFFEu && __umul64hi(~0ull, 3) == 2);
  CHECK(__popc(0xF0F0u) == 8 && __ffs(0) == 0 && __ffs(8) == 4 && __clz(0) == 32 && __clz(1) == 31 && __clzll(1) == 63);
}

constexpr gigpo::test::Test tests[] = {{"grids and blocks", grids_and_blocks},
                          {"shuffles", shuffles},
                          {"votes", votes},
                          {"random order", test_random_order},
                          {"shared memory", test_shared_memory_is_fresh},
                          {"matrices", matrices},
                          {"asynchronous copies", asynchronous_copies},
                          {"numbers", numbers}};

}  // namespace

int main() {
  return gigpo::test::run_all(tests);
}
