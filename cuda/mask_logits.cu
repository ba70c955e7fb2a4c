// Masking of logits that a grammar does not allow: Device::mask_logits. A block handles part of a masked row; a mask
// word is read by the 32 threads of its logits.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 256, in_block = 8 * threads;  // logits

// Memory traffic per logit: at most 4 bytes, written only where it is masked, and 1/8 byte of the mask.
template <class Logit>
__global__ void __launch_bounds__(threads) mask_logits_kernel(Logit* logits, int64_t stride, int64_t columns, LogitMasks masks) {
  const int64_t row = blockIdx.y, begin = int64_t{blockIdx.x} * in_block;
  const uint32_t* words = masks.words + row * masks.words_per_row;
  Logit* to = logits + masks.rows[row] * stride;
  for (int64_t v = begin + threadIdx.x; v < min(begin + in_block, columns); v += threads) {
    if (!(words[v / 32] >> (v % 32) & 1)) assign(&to[v], masked_logit);
  }
}

}  // namespace

void mask_logits(Tensor logits, const LogitMasks& masks, cudaStream_t stream) {
  if (masks.count == 0 || logits.columns == 0) return;
  const Grid grid(unsigned((logits.columns + in_block - 1) / in_block), unsigned(masks.count));
  with_type(logits.type, [&](auto tag) {
    using Logit = typename decltype(tag)::type;
    launch(mask_logits_kernel<Logit>, grid, dim3(threads), 0, stream, static_cast<Logit*>(logits.data), logits.stride, logits.columns, masks);
  });
}

}  // namespace gigpo::cuda
