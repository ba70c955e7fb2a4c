// C = op(A) · op(B) + bias + added for bf16 on Hopper's tensor cores (wgmma).
//
// A persistent block computes one tile of C after another. One thread of its first warpgroup, the producer, fetches the
// tiles of A and B with TMA, 64 of k at a time, as many stages ahead as fit into shared memory, including stages of the
// next tile while this one is written. The other two warpgroups, the consumers, each multiply 64 rows of A with all
// columns of B. Two barriers per stage signal that it is full and that it may be refilled.
//
// If the tiles of C form vertical pairs, two blocks are a cluster: they need the same columns of B, so each fetches
// half of them into the shared memory of both (TMA multicast). A stage may be refilled when the consumers of both
// blocks have released it, which they signal to both producers; it is full when A and both halves of B have arrived.
//
// Order of sums in an element of C: over each range of k (cuda/matmul_wgmma_plan.h: by the shape alone), one chain of
// wgmma steps of 16 from zero, in order; the sums of the ranges are added in order.
#include "cuda/matmul_wgmma.h"

#include "cuda/launch.h"
#include "cuda/matmul_output.cuh"
#include "cuda/matmul_self_test.h"
#include "cuda/matmul_wgmma_plan.h"
#include "cuda/matmul_wgmma_tile.cuh"
#include "cuda/gated_unit.cuh"
#include "cuda/tensor_map.h"

namespace gigpo::cuda {

namespace {

struct WgmmaProduct {
  CUtensorMap a, b;
  int64_t m, n, steps, steps_of_range, ranges;  // for a gated product n is half of B's rows
  MatmulOutput out;
  MatmulOutput up, activated;  // gated only: then `out` is gate
};

// Calls work(row, column, range) for every tile of this block.
template <class T, class Work>
__device__ void for_each_tile(const WgmmaProduct& p, const Work& work) {
  const int64_t down = steps_of(p.m, T::blocks * wgmma_rows), across = steps_of(p.n, T::step), tiles = down * across;
  for (int64_t i = blockIdx.x / T::blocks; i < tiles * p.ranges; i += gridDim.x / T::blocks) {
    const TilePlace place = place_of_tile(i % tiles, down, across);
    work((place.down * T::blocks + blockIdx.x % T::blocks) * wgmma_rows, place.across * T::step, i / tiles);
  }
}

template <class T, class Step>
__device__ void for_each_step(const WgmmaProduct& p, int64_t range, const Step& step) {
  const int64_t first = range * p.steps_of_range;
  const int64_t last = first + p.steps_of_range < p.steps ? first + p.steps_of_range : p.steps;
  for (int64_t i = first; i < last; i++) step(i, i == first);
}

template <class T>
__device__ void produce(const WgmmaProduct& p, char* memory, uint64_t* full, uint64_t* empty) {
  Ring<T::stages> ring;
  const int rank = int(blockIdx.x % T::blocks);
  for_each_tile<T>(p, [&](int64_t row, int64_t column, int64_t range) {
    for_each_step<T>(p, range, [&](int64_t step, bool) {
      char* const stage = memory + ring.stage * T::stage_bytes;
      barrier_wait(empty + ring.stage, ring.round ^ 1);  // in the first round there is nothing to release
      barrier_expect(full + ring.stage, T::stage_bytes);
      T::A::template fetch<1, 1>(stage, &p.a, row, step * wgmma_depth, full + ring.stage);
      char* const b = stage + T::A::bytes;
      if constexpr (T::gated) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          if (T::blocks == 2 && half != rank) continue;
          T::HalfOfB::template fetch<1, T::blocks>(b + half * T::HalfOfB::bytes, &p.b, half * p.n + column, step * wgmma_depth,
                                                   full + ring.stage);
        }
      } else {
        T::B::template fetch<T::blocks, T::blocks>(b, &p.b, column, step * wgmma_depth, full + ring.stage, rank);
      }
      ring.advance();
    });
  });
}

// Epilogue of a gated product: gate, up, and SwiGLU of their rounded values, as cuda/gated_unit.cu would read them.
template <class T>
__device__ void write_gated(const WgmmaProduct& p, const float (&sums)[T::columns / 2], float* staged, int64_t row,
                            int64_t column) {
  constexpr int slices = T::step / Slice::warp_columns;
#pragma unroll
  for (int s = 0; s < slices; s++) {
    const int64_t at = column + s * Slice::warp_columns;
    write_sums<Slice>(p.out, slice_of(sums, s), staged, row, at);
    write_sums<Slice>(p.up, slice_of(sums, slices + s), staged, row, at);
    float activated[Slice::sums_of_lane];
#pragma unroll
    for (int i = 0; i < Slice::sums_of_lane; i++) {
      const auto rounded = [&](int slice) { return to_float(__float2bfloat16_rn(sums[slice * Slice::sums_of_lane + i])); };
      activated[i] = swiglu_of(rounded(s), rounded(slices + s));
    }
    write_sums<Slice>(p.activated, slice_of(activated, 0), staged, row, at);
  }
}

template <class T>
__device__ void consume(const WgmmaProduct& p, char* memory, float* staged, uint64_t* full, uint64_t* empty) {
  const int group = int(threadIdx.x) / warpgroup - 1, warp = int(threadIdx.x) % warpgroup / 32;
  float* const own_staged = staged + (group * 4 + warp) * Slice::floats;
  Ring<T::stages> ring;
  const auto leave = [&](int stage) {  // each warp signals for itself: it does not know whether others have finished reading
    if (threadIdx.x % 32 != 0) return;
    if constexpr (T::blocks == 1) barrier_arrive(empty + stage);
    else for (unsigned block = 0; block < T::blocks; block++) barrier_arrive_at(empty + stage, block);
  };
  for_each_tile<T>(p, [&](int64_t row, int64_t column, int64_t range) {
    float sums[T::columns / 2];
    int last = 0;
    for_each_step<T>(p, range, [&](int64_t, bool first) {
      const char* const a = memory + ring.stage * T::stage_bytes + group * 64 * 128;  // 64 lines, or the box of 64 rows
      const char* const b = memory + ring.stage * T::stage_bytes + T::A::bytes;
      barrier_wait(full + ring.stage, ring.round);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < wgmma_depth; k += 16) {
        wgmma<T::columns, T::transpose_a, !T::transpose_b>(sums, T::A::at(a, k), T::B::at(b, k), !first || k > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();  // this step's products continue; the last step's have read their stage
      if (!first) leave(last);
      last = ring.stage;
      ring.advance();
    });
    wgmma_wait<0>(sums);
    leave(last);
    const int64_t first = row + group * 64 + warp * 16;
    if constexpr (T::gated) {
      write_gated<T>(p, sums, own_staged, first, column);
    } else {
      MatmulOutput out = p.out;
      if (p.ranges > 1) out.c = static_cast<float*>(out.c) + range * p.m * out.c_stride;
#pragma unroll
      for (int s = 0; s < T::columns / Slice::warp_columns; s++) {
        write_sums<Slice>(out, slice_of(sums, s), own_staged, first, column + s * Slice::warp_columns);
      }
    }
  });
}

template <class T>
__global__ __launch_bounds__(wgmma_threads, 1) GIGPO_CLUSTER(T::blocks) void wgmma_kernel(const __grid_constant__ WgmmaProduct p) {
#if defined(GIGPO_CUDA_EMULATOR) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  char* const shared = dynamic_shared<char>();
  char* const memory = shared + (T::alignment - shared_address(shared) % T::alignment) % T::alignment;
  auto* const staged = reinterpret_cast<float*>(memory + T::stages * T::stage_bytes);
  auto* const full = reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(staged) + T::output_bytes);
  uint64_t* const empty = full + T::stages;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < T::stages; stage++) {
      barrier_init(full + stage, 1);
      barrier_init(empty + stage, T::blocks * consumers * warpgroup / 32);
    }
    fence_async_proxy();
  }
  const auto meet = [] {
    if constexpr (T::blocks == 1) __syncthreads();
    else meet_cluster();
  };
  meet();
  if (threadIdx.x < warpgroup) {
    give_registers<producer_registers>();
    if (threadIdx.x == 0) produce<T>(p, memory, full, empty);
  } else {
    take_registers<consumer_registers>();
    consume<T>(p, memory, staged, full, empty);
  }
  if constexpr (T::blocks > 1) {
    __syncwarp();
    meet();  // the other block still arrives at the barriers of this one
  }
#endif
}

template <class T>
bool launch_tiles(const Matmul& product, WgmmaProduct& p, cudaStream_t stream) {
  if (!map_tiles(product.a, T::A::lines, &p.a) || !map_tiles(product.b, T::lines_of_b, &p.b)) return false;
  const int64_t tiles = steps_of(p.m, T::blocks * wgmma_rows) * T::blocks * steps_of(p.n, T::step) * p.ranges;
  // As many as run at once (a TPC has two multiprocessors); results do not depend on the number.
  const int blocks = product.multiprocessors > 0 ? product.multiprocessors : count_multiprocessors();
  Grid grid(unsigned(std::min<int64_t>(tiles, std::max(blocks / T::blocks, 1) * T::blocks)));
#ifdef GIGPO_CUDA_EMULATOR
  grid.cluster = T::blocks;  // also declared by the compiled kernel
#endif
  launch(wgmma_kernel<T>, grid, dim3(wgmma_threads), T::shared_bytes, stream, p);
  return true;
}

inline bool may_pair() {
  static const bool known = !is_off("GIGPO_BLOCK_PAIRS");
  return known;
}

// Uses pairs of blocks if the number of row tiles is even and B's columns can be halved.
template <int columns, bool transpose_a, bool transpose_b, bool gated = false>
bool launch_blocks(const Matmul& product, WgmmaProduct& p, cudaStream_t stream) {
  if constexpr (transpose_b || columns % 128 == 0) {
    if (steps_of(p.m, wgmma_rows) % 2 == 0 && may_pair())
      return launch_tiles<WgmmaTile<columns, transpose_a, transpose_b, gated, 2>>(product, p, stream);
  }
  return launch_tiles<WgmmaTile<columns, transpose_a, transpose_b, gated>>(product, p, stream);
}

template <int columns>
bool launch_columns(const Matmul& product, WgmmaProduct& p, cudaStream_t stream) {
  if (product.transpose_a) return launch_blocks<columns, true, false>(product, p, stream);
  if (product.transpose_b) return launch_blocks<columns, false, true>(product, p, stream);
  return launch_blocks<columns, false, false>(product, p, stream);
}

// Whether TMA can read the operands.
bool can_take(const Matmul& p) { return mappable(p.a) && mappable(p.b) && p.k() > 0 && !(p.transpose_a && p.transpose_b); }

}  // namespace

std::string why_no_wgmma() {
  int device = 0, major = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major != 9) return "the GPU is not a Hopper";
  if (is_off("GIGPO_WGMMA")) return "GIGPO_WGMMA is off";
#if defined(GIGPO_CUDA_EMULATOR) || defined(GIGPO_SM90A)
  // All GPUs of a machine are assumed to be of the same model, so one test is enough.
  static const std::string wrong = [] {
    const std::string name = "the self-test of wgmma products (to open the device without them, set GIGPO_WGMMA=off; without pairs of blocks, "
                             "GIGPO_BLOCK_PAIRS=off)";
    for (const int columns : {256, 192, 128}) {  // small products alone would choose the narrowest
      const std::string found = matmul_self_test([=](auto&&... arguments) { return matmul_wgmma(arguments..., columns); }, name);
      if (!found.empty()) return found + ", in tiles of " + std::to_string(columns) + " columns";
    }
    return gated_self_test(matmul_wgmma_swiglu, [](auto&&... arguments) { return matmul_wgmma(arguments...); }, name);
  }();
  return wrong;
#else
  return "this build has no kernels for sm_90a";
#endif
}

bool wgmma_pays(const Matmul& p) {
  return p.m() >= 2 * wgmma_rows && p.n() >= 128 && p.k() >= 4 * wgmma_depth && p.m() * p.n() * p.k() >= int64_t{1} << 28;
}

bool matmul_wgmma(const Matmul& product, void* workspace, size_t workspace_bytes, cudaStream_t stream, int columns) {
  if (product.m() == 0 || product.n() == 0) return true;
  if (!can_take(product)) return false;
  const RangeRoom room(workspace, workspace_bytes);
  const double read = product.added ? 2 : 1;
  // Only the gradient of a weight has few tiles and large k.
  WgmmaPlan plan = wgmma_plan(product.m(), product.n(), product.k(), read * double(bytes_of(product.c.type)),
                              product.transpose_a ? 8 : 1, int64_t(room.bytes));
  if (columns != 0) plan.columns = columns;
  const int64_t steps = steps_of(product.k(), wgmma_depth);
  WgmmaProduct p = {{}, {}, product.m(), product.n(), steps, steps_of(steps, plan.ranges), plan.ranges, output_of(product), {}, {}};
  if (p.ranges > 1) p.out = room.output(p.m, p.n);
  const bool launched = plan.columns == 256   ? launch_columns<256>(product, p, stream)
                        : plan.columns == 192 ? launch_columns<192>(product, p, stream)
                                              : launch_columns<128>(product, p, stream);
  if (launched && p.ranges > 1) add_ranges(p.ranges, p.out, output_of(product), stream);
  return launched;
}

bool matmul_wgmma_swiglu(Tensor x, Tensor weight, Tensor gate_up, Tensor activated, cudaStream_t stream) {
  const int64_t half = activated.columns;
  const auto into = [&](Tensor c) { return Matmul{x, false, weight, true, {}, {}, c}; };
  if (gate_up.type != Type::bf16 || gate_up.rows == 0 || half == 0 || !can_take(into(gate_up))) return false;
  const int64_t steps = steps_of(x.columns, wgmma_depth);
  WgmmaProduct p = {{}, {}, gate_up.rows, half, steps, steps, 1, output_of(into(gate_up.column_range(0, half))),
                    output_of(into(gate_up.column_range(half, half))), output_of(into(activated))};
  return launch_blocks<256, false, true, true>(into(gate_up), p, stream);
}

}  // namespace gigpo::cuda
