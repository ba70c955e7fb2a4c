// The fused head of core/kernels/token_log_probs.h: overwrites logits with the gradient of the loss. A bf16 gradient of
// fp32 logits starts where its row of logits did, and takes half of the space.
//   d loss / d z_j = 2^(y_j) (constant + slope y_j), plus g / T at the chosen token   (y, S, W: softmax_sums.cuh)
//   constant = (c (H - log S) - G / T) / S,  slope = c ln 2 / S,  c = -d loss / d H / T
// with G = g unless the loss has gradients by other tokens, too (head_tokens.cu).
//
// Every logit is needed twice: for the sums, and for its own gradient. Three kernels, by memory traffic per bf16 logit
// (fp32 logits twice as much; fp32 to bf16 6, 10 and 4 bytes):
//   held_rows    4 bytes, read once and written once: the row stays on the chip, partly in registers, partly in shared
//                memory. The 303,872 bytes of Qwen's vocabulary are 80 KB in the registers of 512 threads and 217 KB in
//                shared memory (sm_90), or 144 KB and 153 KB (sm_80).
//   read_twice   6 bytes, read twice and written once, minus hits in the L2 cache: for rows that do not fit on the chip,
//                such as 151,936 fp32 logits, and rows that are unaligned.
//   score_rows   2 bytes: without a gradient; as cuda/token_log_probs.cu.
//
// A block of held_rows iterates over rows. Each thread sums and overwrites the elements that it fetched itself, so
// threads only synchronise to merge the sums; and as soon as 16 bytes of gradient are written, 16 bytes of the next row
// are requested in their place. So reads, arithmetic and writes overlap, even with one block per multiprocessor. On an
// H200 a row of 151,936 takes 18.7 us of a multiprocessor's share of the memory bandwidth (607,744 bytes at 32.6 per
// nanosecond), its two exponentials per logit 10.8 us (16 per clock), the merge and the loss in double about 2.
// a nanosecond), its two exponentials a logit 10.8 us (16 a clock), the merge and the loss in double about 2.
#include <algorithm>

#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/softmax_sums.cuh"

namespace gigpo::cuda {

namespace {

// Values that the threads of a row need for its gradient.
struct RowGradient {
  float origin, constant, slope, token;
};

// Computed by thread 0 alone.
__device__ RowGradient row_loss(float chosen, const SoftmaxSums& sums, const PolicyHeadRow& input,
                                const PolicyHeadOptions& options, PolicyHeadResult* result) {
  const Score s = score(chosen, sums, options.temperature);
  const HeadRowGradient g = head_row_loss(s.log_prob, s.entropy, input, options, result);
  // p (-G + c (log p + H)), with log p = y ln 2 - log S
  const double sum = double(sums.exponentials);
  return {sums.origin, float((g.entropy * (s.entropy - s.log_sum) - g.all) / sum),
          float(g.entropy * 0.69314718055994530942 / sum), float(g.token)};
}

// `token` is relative to the first of these logits, and may be outside.
template <int count>
__device__ void to_gradient(float (&z)[count], int64_t token, const RowGradient& g, float factor) {
  if (g.slope == 0) {
#pragma unroll
    for (int k = 0; k < count; k++) z[k] = power_of_2((z[k] - g.origin) * factor) * g.constant;
  } else {
#pragma unroll
    for (int k = 0; k < count; k++) {
      const float y = (z[k] - g.origin) * factor;
      z[k] = power_of_2(y) * (g.constant + g.slope * fmaxf(y, least_exponent));
    }
  }
  if (token < 0 || token >= count) return;
#pragma unroll
  for (int k = 0; k < count; k++)
    if (k == token) z[k] += g.token;
}

// Output of a row that is not computed: weight 0, or a token outside the vocabulary.
template <class Gradient>
__device__ void write_unused(int64_t vocab, Gradient* row, const PolicyHeadRow& input, PolicyHeadResult* to) {
  const float value = input.weight == 0 ? 0 : NAN;
  if (in_packs(vocab, row)) {
    constexpr int size = full_width<Gradient>;
    float values[size];
    for (float& each : values) each = value;
    for (int64_t i = threadIdx.x; i < vocab / size; i += blockDim.x) store(row + i * size, values);
  } else {
    for (int64_t j = threadIdx.x; j < vocab; j += blockDim.x) assign(row + j, value);
  }
  if (threadIdx.x != 0) return;
  PolicyHeadResult result;
  result.log_prob = result.entropy = result.loss = result.kl = result.ratio = value;
  *to = result;
}

__device__ bool is_used(const PolicyHeadRow& input, int64_t vocab) {
  return input.weight != 0 && input.token >= 0 && input.token < vocab;
}

constexpr int streaming_threads = 256;
// Blocks, of a row each, that share a multiprocessor; one less if they iterate over rows, which takes registers.
constexpr int score_blocks = 5, read_twice_blocks = 4;

template <class Logit>
__device__ void score_row(int64_t row, int64_t vocab, const Logit* logits, const PolicyHeadRow* inputs, double temperature,
                          PolicyHeadResult* results) {
  const int64_t token = inputs[row].token;
  const Logit* z = logits + row * vocab;
  const bool known = token >= 0 && token < vocab;  // uniform across the block
  SoftmaxSums sums;
  if (known) sums = row_sums<streaming_threads>(vocab, z, base2_factor(temperature));
  if (threadIdx.x != 0) return;
  PolicyHeadResult result;
  if (known) {
    const Score s = score(to_float(z[token]), sums, temperature);
    result.log_prob = float(s.log_prob);
    result.entropy = float(s.entropy);
  } else {
    result.log_prob = result.entropy = result.loss = result.kl = result.ratio = NAN;
  }
  results[row] = result;
}

template <class Logit, bool walks>
__global__ __launch_bounds__(streaming_threads, score_blocks - walks) void score_rows(int64_t rows, int64_t vocab, const Logit* logits,
                                                                                      const PolicyHeadRow* inputs, double temperature,
                                                                                      PolicyHeadResult* results) {
  if constexpr (!walks) return score_row(blockIdx.x, vocab, logits, inputs, temperature, results);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    score_row(row, vocab, logits, inputs, temperature, results);
    __syncthreads();  // warp 0 has read the other warps' sums
  }
}

// Second pass over a row, in which a block overwrites its `count` packs; read(i, values) and write(i, values) access
// pack i. If output and input have the same width, the pass runs backwards, because the end of the row may still be in
// the L2 cache. If the output is narrower, the result of a pack precedes it in memory: the pass runs forwards, and a
// barrier separates the reads of a round from its writes.
template <bool narrower, int size, class Read, class Write>
__device__ void overwrite(int64_t count, Read read, Write write) {
  if constexpr (narrower) {
    constexpr int depth = 4;
    for (int64_t start = 0; start < count; start += depth * streaming_threads) {
      float values[depth][size];
#pragma unroll
      for (int d = 0; d < depth; d++) {
        const int64_t i = start + d * streaming_threads + threadIdx.x;
        if (i < count) read(i, values[d]);
      }
      __syncthreads();
#pragma unroll
      for (int d = 0; d < depth; d++) {
        const int64_t i = start + d * streaming_threads + threadIdx.x;
        if (i < count) write(i, values[d]);
      }
    }
  } else {
    for (int64_t i = count - 1 - threadIdx.x; i >= 0; i -= streaming_threads) {
      float values[size];
      read(i, values);
      write(i, values);
    }
  }
}

template <class Logit, class Gradient>
__device__ void read_row_twice(int64_t row, int64_t vocab, Logit* logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                               PolicyHeadResult* results) {
  Logit* z = logits + row * vocab;
  auto* const out = reinterpret_cast<Gradient*>(z);
  if (!is_used(inputs[row], vocab)) return write_unused(vocab, out, inputs[row], results + row);
  const int token = inputs[row].token;
  const float factor = base2_factor(options.temperature);
  const SoftmaxSums sums = row_sums<streaming_threads>(vocab, z, factor);
  __shared__ RowGradient shared_gradient;
  if (threadIdx.x == 0) shared_gradient = row_loss(to_float(z[token]), sums, inputs[row], options, results + row);
  __syncthreads();  // thread 0 has read the chosen logit: logits may be overwritten now
  const RowGradient gradient = shared_gradient;
  constexpr bool narrower = sizeof(Gradient) < sizeof(Logit);
  if (in_packs(vocab, z)) {
    constexpr int size = full_width<Logit>;
    overwrite<narrower, size>(
        vocab / size, [&](int64_t i, float(&values)[size]) { widen(reinterpret_cast<const LogitPack*>(z)[i], values); },
        [&](int64_t i, float(&values)[size]) {
          to_gradient(values, token - i * size, gradient, factor);
          store(out + i * size, values);
        });
  } else {
    overwrite<narrower, 1>(
        vocab, [&](int64_t j, float(&value)[1]) { value[0] = to_float(z[j]); },
        [&](int64_t j, float(&value)[1]) {
          to_gradient(value, token - j, gradient, factor);
          assign(out + j, value[0]);
        });
  }
}

template <class Logit, class Gradient, bool walks>
__global__ __launch_bounds__(streaming_threads, read_twice_blocks - walks) void read_twice(int64_t rows, int64_t vocab, Logit* logits,
                                                                                           const PolicyHeadRow* inputs,
                                                                                           PolicyHeadOptions options,
                                                                                           PolicyHeadResult* results) {
  if constexpr (!walks) return read_row_twice<Logit, Gradient>(blockIdx.x, vocab, logits, inputs, options, results);
  // Thread 0 writes a row's gradient after a barrier of its sums, which the others reach after finishing the previous
  // row.
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    read_row_twice<Logit, Gradient>(row, vocab, logits, inputs, options, results);
}

// Shape of a block of held_rows: `kept` packs per thread stay in registers, the rest of the row in shared memory, and
// `blocks` of them share a multiprocessor. This always makes 512 threads with up to 128 registers each: four warps per
// scheduler, with eight independent logits each, keep the exponential units busy, and the registers that a thread needs
// besides its logits are needed only 512 times.
template <int threads_, int kept_, int blocks_>
struct Shape {
  static constexpr int threads = threads_, kept = kept_, blocks = blocks_;
};

// One thread's packs of a row: every threads-th. Shared memory holds the first ones of the row, which arrive in
// `parts`.
template <class Logit, class Gradient, class Shape>
class HeldRow {
  static constexpr int size = full_width<Logit>, threads = Shape::threads, parts = 4;

 public:
  __device__ HeldRow(int packs, int shared_packs)
      : shared(dynamic_shared_or_none(shared_packs)), packs(packs), shared_packs(shared_packs) {}

  __device__ void fetch(const Logit* row) {
    for (int part = 0; part < parts; part++) {
      for (int i = start(part) + int(threadIdx.x); i < start(part + 1); i += threads) fetch_shared(row, i);
      copy_async_commit();
    }
#pragma unroll
    for (int r = 0; r < Shape::kept; r++) fetch_kept(row, r);
  }

  __device__ SoftmaxSums sums(float factor) {
    SoftmaxSums sums;
    float z[size];
    if (shared_packs == 0) {
      for (float& value : z) value = -INFINITY;
      if (int(threadIdx.x) < packs) widen(registers[0], z);
      sums.begin(z);
    }
#pragma unroll 1
    for (int part = 0; part < parts; part++) {
      wait_for(part);
      if (part == 0 && shared_packs > 0) {
        for (float& value : z) value = -INFINITY;
        if (int(threadIdx.x) < start(1)) widen(shared[threadIdx.x], z);
        sums.begin(z);
      }
      for (int i = start(part) + int(threadIdx.x); i < start(part + 1); i += threads) {
        widen(shared[i], z);
        sums.add(z, factor);
      }
    }
#pragma unroll
    for (int r = 0; r < Shape::kept; r++) {
      if (kept_pack(r) >= packs) continue;
      widen(registers[r], z);
      sums.add(z, factor);
    }
    return sums;
  }

  // Writes the row's gradient, and fetches the next row if there is one.
  __device__ void exchange(Gradient* row, int token, const RowGradient& gradient, float factor, const Logit* next) {
#pragma unroll 1
    for (int part = 0; part < parts; part++) {
      for (int i = start(part) + int(threadIdx.x); i < start(part + 1); i += threads) {
        write(row, i, shared[i], token, gradient, factor);
        if (next) fetch_shared(next, i);
      }
      copy_async_commit();
    }
#pragma unroll
    for (int r = 0; r < Shape::kept; r++) {
      if (kept_pack(r) < packs) write(row, kept_pack(r), registers[r], token, gradient, factor);
      if (next) fetch_kept(next, r);
    }
  }

 private:
  static __device__ LogitPack* dynamic_shared_or_none(int shared_packs) {
    return shared_packs > 0 ? dynamic_shared<LogitPack>() : nullptr;
  }

  __device__ int start(int part) const {
    const int rounds = (shared_packs + threads - 1) / threads, rounds_of_part = (rounds + parts - 1) / parts;
    return min(part * rounds_of_part * threads, shared_packs);
  }
  __device__ int kept_pack(int r) const { return shared_packs + r * threads + int(threadIdx.x); }

  __device__ void fetch_shared(const Logit* row, int i) {
    copy_async_16(shared + i, reinterpret_cast<const LogitPack*>(row) + i, true);
  }
  __device__ void fetch_kept(const Logit* row, int r) {
    if (kept_pack(r) < packs) registers[r] = reinterpret_cast<const LogitPack*>(row)[kept_pack(r)];
  }

  static __device__ void wait_for(int part) {
    static_assert(parts == 4);
    if (part == 0) copy_async_wait<3>();
    else if (part == 1) copy_async_wait<2>();
    else if (part == 2) copy_async_wait<1>();
    else copy_async_wait<0>();
  }

  static __device__ void write(Gradient* row, int i, const LogitPack& pack, int token, const RowGradient& gradient,
                               float factor) {
    float z[size];
    widen(pack, z);
    to_gradient(z, token - i * size, gradient, factor);
    store(row + int64_t{i} * size, z);
  }

  LogitPack registers[Shape::kept];
  LogitPack* shared;
  int packs, shared_packs;
};

template <class Logit, class Gradient, class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::blocks) void held_rows(int64_t rows, int vocab, int shared_packs,
                                                                           Logit* logits, const PolicyHeadRow* inputs,
                                                                           PolicyHeadOptions options,
                                                                           PolicyHeadResult* results) {
  __shared__ RowGradient shared_gradient;
  HeldRow<Logit, Gradient, Shape> held(vocab / full_width<Logit>, shared_packs);
  const float factor = base2_factor(options.temperature);
  // Chosen token of a row, or -1 if there is nothing to compute; uniform across the block.
  const auto token_of = [&](int64_t row) { return row < rows && is_used(inputs[row], vocab) ? inputs[row].token : -1; };
  int64_t row = blockIdx.x;
  int token = token_of(row);
  if (token >= 0) held.fetch(logits + row * vocab);
  while (row < rows) {
    Logit* z = logits + row * vocab;
    auto* const out = reinterpret_cast<Gradient*>(z);
    const int64_t next = row + gridDim.x;
    const int next_token = token_of(next);
    const Logit* next_logits = next_token >= 0 ? logits + next * vocab : nullptr;
    if (token < 0) {
      write_unused(vocab, out, inputs[row], results + row);
      if (next_logits) held.fetch(next_logits);
    } else {
      const Logit chosen = z[token];
      SoftmaxSums sums = held.sums(factor);
      sums.template merge_block<Shape::threads>(factor);
      if (threadIdx.x == 0) shared_gradient = row_loss(to_float(chosen), sums, inputs[row], options, results + row);
      __syncthreads();  // thread 0 has the chosen logit, and all have the row: logits may be overwritten now
      const RowGradient gradient = shared_gradient;  // in registers: stores might alias shared memory
      held.exchange(out, token, gradient, factor, next_logits);
      if constexpr (Shape::threads == 32) __syncwarp();  // all have read the gradient; otherwise merge_block synchronises
    }
    row = next, token = next_token;
  }
}

// Capacity of the GPU.
struct Card {
  // Limited to `most` multiprocessors, unless 0.
  explicit Card(int most)
      : multiprocessors(most > 0 ? most : count_multiprocessors()), most_shared_bytes(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) {}

  // Dynamic shared memory per block if `blocks` share a multiprocessor. The system reserves 1 KB per block, in addition
  // to the maximum per block; static arrays take less than 512 bytes.
  int shared_bytes(int blocks) const { return ((most_shared_bytes + 1024) / blocks - 1024 - 512) / 16 * 16; }

  int multiprocessors, most_shared_bytes;
};

// Returns false if the row does not fit.
template <class Gradient, class Shape, class Logit>
bool launch_held(const Card& card, int64_t rows, int64_t vocab, Logit* logits, const PolicyHeadRow* inputs,
                 const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream) {
  const int64_t packs = vocab / full_width<Logit>, shared = std::max<int64_t>(packs - Shape::threads * Shape::kept, 0);
  if (shared * 16 > card.shared_bytes(Shape::blocks)) return false;
  const auto blocks = unsigned(std::min<int64_t>(rows, int64_t{card.multiprocessors} * Shape::blocks));
  launch(held_rows<Logit, Gradient, Shape>, blocks, Shape::threads, size_t(shared * 16), stream, rows, int(vocab), int(shared), logits,
         inputs, options, results);
  return true;
}

template <class Gradient, class Logit>
void launch_policy_head(int64_t rows, int64_t vocab, Logit* logits, const PolicyHeadRow* inputs,
                        const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream, int multiprocessors) {
  if (rows == 0) return;
  // A block per row, or as many as the multiprocessors hold at once.
  const bool walk = multiprocessors > 0;
  const auto blocks = [&](int of_each) { return unsigned(walk ? std::min<int64_t>(rows, int64_t{multiprocessors} * (of_each - 1)) : rows); };
  if (options.mode == HeadMode::score)
    return launch(walk ? score_rows<Logit, true> : score_rows<Logit, false>, blocks(score_blocks), streaming_threads, 0, stream, rows, vocab, logits, inputs,
                  options.temperature, results);
  if (in_packs(vocab, logits)) {
    const Card card(multiprocessors);
    const auto fits = [&](auto shape) {
      return launch_held<Gradient, decltype(shape)>(card, rows, vocab, logits, inputs, options, results, stream);
    };
    // The smallest block that holds a row. The last is for GPUs with less shared memory than Hopper.
    if (fits(Shape<32, 4, 16>()) || fits(Shape<128, 8, 4>()) || fits(Shape<256, 8, 2>()) || fits(Shape<512, 10, 1>()) ||
        fits(Shape<512, 18, 1>()))
      return;
  }
  launch(walk ? read_twice<Logit, Gradient, true> : read_twice<Logit, Gradient, false>, blocks(read_twice_blocks), streaming_threads, 0, stream, rows, vocab, logits, inputs, options,
         results);
}

}  // namespace

void policy_head_chunk(int64_t rows, int64_t vocab, float* logits, Type gradient, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream, int multiprocessors) {
  with_type(gradient, [&](auto tag) {
    launch_policy_head<typename decltype(tag)::type>(rows, vocab, logits, inputs, options, results, stream, multiprocessors);
  });
}

void policy_head_chunk(int64_t rows, int64_t vocab, __nv_bfloat16* logits, const PolicyHeadRow* inputs,
                       const PolicyHeadOptions& options, PolicyHeadResult* results, cudaStream_t stream, int multiprocessors) {
  launch_policy_head<__nv_bfloat16>(rows, vocab, logits, inputs, options, results, stream, multiprocessors);
}

}  // namespace gigpo::cuda
