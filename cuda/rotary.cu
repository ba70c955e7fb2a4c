// Rotary position embedding, in place: with a, b the halves of a head, position t and angle θ_j = t · frequency_j,
//   a_j, b_j = a_j cos θ_j - b_j sin θ_j, b_j cos θ_j + a_j sin θ_j.
// The inverse rotates by -θ. Cosines and sines come from an fp32 table; the heads of a token share its line, which
// stays in L1.
#include "cuda/rotary.cuh"

#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

// Memory traffic: 2 · bytes of an element. A thread rotates a pack of each half.
template <class T, int width>
__global__ void __launch_bounds__(RowGrid::threads)
rotate_kernel(RowGrid grid, T* x, int64_t stride, int half, const int32_t* positions, const float* cosine, const float* sine,
              float direction) {
  const int64_t row = grid.row();
  if (row >= grid.rows) return;
  const int64_t line = positions[row] * int64_t{half};
  const unsigned packs_of_half = unsigned(half / width);
  for (int64_t i = grid.first_pack(); i < grid.packs; i += grid.pack_step()) {
    const unsigned head = unsigned(i) / packs_of_half, j = (unsigned(i) - head * packs_of_half) * width;
    T* low = x + row * stride + int64_t{head} * (2 * half) + j;
    float a[width], b[width], c[width], s[width];
    load(low, a);
    load(low + half, b);
    load(cosine + line + j, c);
    load(sine + line + j, s);
    turn(a, b, c, s, direction);
    store(low, a);
    store(low + half, b);
  }
}

}  // namespace

void rotate(Tensor x, int64_t head_size, const Rotary& rotary, bool inverse, cudaStream_t stream) {
  if (x.rows == 0 || x.columns == 0) return;
  const int64_t half = head_size / 2;
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed = covered_by_packs(x, full_width<T>, half) && in_packs(rotary);
    with_width<full_width<T>>(packed, [&](auto width) {
      const RowGrid grid(x.rows, x.columns / 2 / width);
      launch(rotate_kernel<T, width>, dim3(grid.blocks_x, grid.blocks_y), dim3(RowGrid::threads), 0, stream, grid,
             static_cast<T*>(x.data), x.stride, int(half), rotary.positions, rotary.cosine, rotary.sine,
             inverse ? -1.0f : 1.0f);
    });
  });
}

}  // namespace gigpo::cuda
