// Conformance of the emulator's mbarrier, TMA and wgmma with the PTX ISA. Errors are in asynchronous_mistakes.h.
#include "cuda/launch.h"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "test/core/check.h"
#include "test/cuda/emulator/array.h"

using namespace gigpo;
using namespace gigpo::cuda;
using emulator::Array;

namespace {

uint16_t bits(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }

constexpr int arriving = 5, phases = 7;

// Thread 0 sees everything that the others did before each phase ended, and nothing that they do after the next began.
__global__ void count_phases(int* seen) {
  auto* barriers = dynamic_shared<uint64_t>();
  auto* count = reinterpret_cast<int*>(barriers + 2);
  if (threadIdx.x == 0) {
    *count = 0;
    barrier_init(barriers, arriving);
    barrier_init(barriers + 1, 1);
  }
  __syncthreads();
  if (threadIdx.x > arriving) return;
  for (int phase = 0; phase < phases; phase++) {
    if (threadIdx.x == 0) {
      barrier_wait(barriers, unsigned(phase % 2));
      seen[phase] = *count;
      barrier_arrive(barriers + 1);
    } else {
      barrier_wait(barriers + 1, unsigned(phase % 2 ^ 1));  // initially the phase before the first, which counts as ended
      atomicAdd(count, 1);
      barrier_arrive(barriers);
    }
  }
}

void test_barrier_phases() {
  const Array<int> seen(phases);
  launch(count_phases, 1, 32, 64, nullptr, seen.data);
  for (int phase = 0; phase < phases; phase++) CHECK(seen[size_t(phase)] == arriving * (phase + 1));
}

// Copies a box at (x, y) to consecutive lines, without the swizzle.
__global__ void fetch_box(const __grid_constant__ CUtensorMap map, int x, int y, int lines, uint16_t* to) {
  char* const shared = dynamic_shared<char>();
  char* const box = shared + (1024 - shared_address(shared) % 1024) % 1024;
  auto* const barrier = reinterpret_cast<uint64_t*>(box + lines * 128);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    fence_async_proxy();
    barrier_expect(barrier, unsigned(lines * 128));
    copy_tile(box, &map, x, y, barrier);
  }
  __syncthreads();
  barrier_wait(barrier, 0);
  for (int i = int(threadIdx.x); i < lines * 64; i += 32) {
    const int line = i / 64, chunk = i % 64 / 8;
    to[i] = reinterpret_cast<uint16_t*>(box)[line * 64 + (chunk ^ line % 8) * 8 + i % 8];
  }
}

void boxes() {
  constexpr int rows = 21, columns = 72, stride = 80, lines = 16;
  const Array<uint16_t> matrix(rows * stride), found(lines * 64);
  for (int i = 0; i < rows * stride; i++) matrix[size_t(i)] = uint16_t(i + 1);
  CUtensorMap map;
  CHECK(map_tiles({matrix.data, Type::bf16, rows, columns, stride}, lines, &map));
  for (const auto& [x, y] : {std::pair(0, 0), std::pair(16, 3), std::pair(64, 16), std::pair(-8, -2), std::pair(128, 0)}) {
    launch(fetch_box, 1, 32, 1024 + lines * 128 + 16, nullptr, map, x, y, lines, found.data);
    for (int i = 0; i < lines * 64; i++) {
      const int row = y + i / 64, column = x + i % 64;
      const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
      CHECK(found[size_t(i)] == (inside ? row * stride + column + 1 : 0), "box (%d, %d), element %d", x, y, i);
    }
  }
  CHECK(!map_tiles({matrix.data + 4, Type::bf16, rows, 64, stride}, lines, &map));
  CHECK(!map_tiles({matrix.data, Type::bf16, rows, columns, stride + 4}, lines, &map));
  CHECK(!map_tiles({matrix.data, Type::bf16, rows, columns, stride}, 257, &map));
}

// Position of element (i, k) of an operand with 16 k in the ISA's canonical layouts, in elements. The strides of this
// test differ from those of the kernels, to leave gaps between the groups.
struct Layout {
  bool mn_major;
  int leading, stride;  // bytes
  __host__ __device__ int place(int i, int k) const {
    return mn_major ? i / 64 * (leading / 2) + k / 8 * (stride / 2) + k % 8 * 64 + (i % 64 / 8 ^ k % 8) * 8 + i % 8
                    : i / 8 * (stride / 2) + i % 8 * 64 + (k / 8 ^ i % 8) * 8 + k % 8;
  }
};
constexpr Layout a_layouts[] = {{false, 16, 2048}, {true, 4096, 1024}}, b_layouts[] = {{false, 16, 1024}, {true, 1024, 2048}};

// D [64][128] = A · B, twice, the second added to the first.
template <bool m_major, bool n_major>
__global__ void multiply(const uint16_t* a, const uint16_t* b, float* d) {
  char* const shared = dynamic_shared<char>();
  char* const memory = shared + (1024 - shared_address(shared) % 1024) % 1024;
  auto *left = reinterpret_cast<uint16_t*>(memory), *right = reinterpret_cast<uint16_t*>(memory + (16 << 10));
  for (int i = int(threadIdx.x); i < 64 * 16; i += 128) left[a_layouts[m_major].place(i / 16, i % 16)] = a[i];
  for (int i = int(threadIdx.x); i < 128 * 16; i += 128) right[b_layouts[n_major].place(i / 16, i % 16)] = b[i];
  fence_async_proxy();
  __syncthreads();
  const uint64_t a_at = matrix_descriptor(left, unsigned(a_layouts[m_major].leading), unsigned(a_layouts[m_major].stride));
  const uint64_t b_at = matrix_descriptor(right, unsigned(b_layouts[n_major].leading), unsigned(b_layouts[n_major].stride));
  float sums[64];
  wgmma_fence();
  wgmma<128, m_major, n_major>(sums, a_at, b_at, false);
  wgmma_commit();
  wgmma<128, m_major, n_major>(sums, a_at, b_at, true);
  wgmma_commit();
  wgmma_wait<1>();
  wgmma_wait<0>(sums);
  const int warp = int(threadIdx.x) / 32, g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  for (int j = 0; j < 16; j++) {
    float* const at = d + (16 * warp + g) * 128 + 8 * j + 2 * t;
    at[0] = sums[4 * j], at[1] = sums[4 * j + 1];
    at[8 * 128] = sums[4 * j + 2], at[8 * 128 + 1] = sums[4 * j + 3];
  }
}

template <bool m_major, bool n_major>
void product_of_layouts() {
  const auto value = [](int i, int k) { return float((i * 5 + k * 3 + i * k) % 17 - 8) / 4; };
  const Array<uint16_t> a(64 * 16), b(128 * 16);
  const Array<float> d(64 * 128);
  for (int i = 0; i < 64 * 16; i++) a[size_t(i)] = bits(value(i / 16, i % 16));
  for (int i = 0; i < 128 * 16; i++) b[size_t(i)] = bits(value(i / 16 + 50, i % 16));
  launch(multiply<m_major, n_major>, 1, 128, 48 << 10, nullptr, a.data, b.data, d.data);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 128; j++) {
      float sum = 0;
      for (int k = 0; k < 16; k++) sum += 2 * value(i, k) * value(j + 50, k);
      CHECK(d[size_t(i * 128 + j)] == sum, "(%d, %d): %g, not %g", i, j, d[size_t(i * 128 + j)], sum);
    }
}

void products() {
  product_of_layouts<false, false>();
  product_of_layouts<false, true>();
  product_of_layouts<true, false>();
  product_of_layouts<true, true>();
}

constexpr gigpo::test::Test tests[] = {{"phases of barriers", test_barrier_phases}, {"boxes", boxes}, {"products", products}};

}  // namespace

int main() {
  return gigpo::test::run_all(tests);
}
