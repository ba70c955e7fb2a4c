// Common parts of the two gradient kernels of attention (cuda/attention_backward.cu), and their launchers.
//
// Cost model. A warp that holds 16 rows as its left factor loads 512 bytes (one ldmatrix.x4) of the right factor for
// two mma.m16n8k16 of 2,048 multiply-adds each. Shared memory delivers 128 bytes per clock and multiprocessor, so these
// 512 bytes take 4 clocks; the two products take 4 on an A100 (1,024 multiply-adds per clock) and about 3.2 on an H100
// (2,048, of which mma.sync reaches about 0.63). With one row tile per warp, shared memory is the limit. With two, each
// load serves four products; a left factor that is reloaded each time adds loads of its own. Shared-memory clocks per
// clock of the A100's tensor cores:
//                                                     dO·v, q·k   dQ   k·q    v·dO   dK, dV   all seven
//     one row tile, keys and values reloaded, D = 64      1         1   1.25   1.25     1        1.07
//     two, a quarter of the values kept, D = 64          0.5       0.5  0.5    1.25    0.5       0.61
//     one, keys and values reloaded, D = 128              1         1   1.5    1.5      1        1.14
//     one, three quarters of the values kept, D = 128     1         1   1      1.25     1        1.04
// Prediction, if the slower of both determines the time: at D = 64, 1.07 times as fast as the first line on an A100 and
// 1.35 on an H100; at D = 128, 1.1 on either. At D = 128 two row tiles do not fit the 255 registers of a thread: the
// sums alone are 256 in the kernel of keys. Not measured on a GPU yet.
#pragma once
#include "cuda/attention_tiles.cuh"

namespace gigpo::cuda {

// 16-row tiles that a warp processes at once.
template <int D>
constexpr int gradient_row_tiles = D > 64 ? 1 : 2;

constexpr int gradient_warps = 4, gradient_threads = gradient_warps * 32;

struct HeadsMatrix {
  __nv_bfloat16* data;
  int64_t stride;
};

struct AttentionGradients {
  HeadsMatrix d_out, q, k, v, d_q, d_k, d_v;
  const float *log_sums, *deltas;
  VisibleTokens visible;
  int tokens, heads, group;   // query heads per key head
  float scale, base_2_scale;  // 1 / √D, log2(e) / √D
};

void query_gradient(const AttentionGradients& arguments, int64_t head_size, cudaStream_t stream);
void key_gradient(const AttentionGradients& arguments, int64_t head_size, cudaStream_t stream);

}  // namespace gigpo::cuda
