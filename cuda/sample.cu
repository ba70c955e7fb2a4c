// One token per row by the Gumbel-max trick: argmax over j of z_j - log(-log(1 - v_j)) with z = (x - max x) / T is a
// sample of softmax(z). The number v_j comes from word j mod 4 of Philox block j / 4, as on the CPU, and equal logits
// give the CPU's token.
//
// The row is read once. Sums and scores are relative to the maximum so far, so a score is not bit-identical to the
// CPU's, which knows the maximum beforehand. If the two best scores differ by more than both errors, this does not
// matter; otherwise the row is processed again with the CPU's algorithm. Few elements need a score: j beats the best
// score b only if -log(1 - v_j) < e^(z_j - b), and v_j <= -log(1 - v_j), so most are ruled out by a product and a
// comparison, and no random numbers are generated where none could make a token of the warp win.
#include "cuda/launch.h"
#include "cuda/operations.h"
#include "cuda/softmax_sums.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 1024;
constexpr float log2_e = 1.44269504f;
constexpr float least_gap = 0x1p-33f;  // the smallest possible v
constexpr float slack = 1.001f;        // no element is ruled out that is within 0.001 of the best score
constexpr double clear_lead = 2e-4;    // ten times the possible difference between this score and the CPU's

// Result of sampling part of a row.
struct Draw {
  float top = -INFINITY, total = 0, weighted = 0;  // max x, Σ 2^y, Σ 2^y y with y = (x - top) log2(e) / T
  double best = -INFINITY, second = -INFINITY;     // scores, relative to x = 0
  int32_t token = 0;

  __device__ void offer(double score, int32_t index) {
    if (score > best) second = best, best = score, token = index;
    else if (score > second) second = score;
  }

  __device__ void raise_top(float new_top, float factor) {
    if (total != 0) {  // otherwise -inf - -inf would be NaN
      const float shift = (top - new_top) * factor, scale = exp2f(shift);
      weighted = scale * (weighted + total * fmaxf(shift, least_exponent));
      total *= scale;
    }
    top = new_top;
  }

  // Adds the tokens of these logits, none of which is above `top`; p receives 2^y.
  template <int width>
  __device__ void add(const float (&x)[width], float factor, float (&p)[width]) {
    const float origin = top == -INFINITY ? 0 : top;  // only impossible tokens so far
#pragma unroll
    for (int c = 0; c < width; c++) {
      const float y = (x[c] - origin) * factor;
      p[c] = exp2f(y);
      total += p[c];
      weighted += p[c] * fmaxf(y, least_exponent);
    }
  }

  // Of equal scores the one with the lower index wins.
  __device__ void merge(Draw other, float factor) {
    const float highest = fmaxf(top, other.top);
    raise_top(highest, factor);
    other.raise_top(highest, factor);
    total += other.total;
    weighted += other.weighted;
    const bool loses = other.best > best || (other.best == best && other.token < token);
    const double runner_up = loses ? best : other.best;
    if (loses) best = other.best, token = other.token;
    second = fmax(fmax(second, other.second), runner_up);
  }
};

__device__ Draw merge_warp(Draw draw, float factor) {
  for (int distance = 16; distance > 0; distance /= 2) {
    Draw other;
    other.top = __shfl_xor_sync(full_warp, draw.top, distance);
    other.total = __shfl_xor_sync(full_warp, draw.total, distance);
    other.weighted = __shfl_xor_sync(full_warp, draw.weighted, distance);
    other.best = __shfl_xor_sync(full_warp, draw.best, distance);
    other.second = __shfl_xor_sync(full_warp, draw.second, distance);
    other.token = __shfl_xor_sync(full_warp, draw.token, distance);
    draw.merge(other, factor);
  }
  return draw;
}

// Merged result, returned to all threads of the block.
__device__ Draw merge_block(Draw draw, float factor) {
  __shared__ float top[32], total[32], weighted[32];
  __shared__ double best[32], second[32];
  __shared__ int32_t token[32];
  draw = merge_warp(draw, factor);
  __syncthreads();  // the last call's values have been read
  if (lane_index() == 0) {
    const int warp = warp_index();
    top[warp] = draw.top, total[warp] = draw.total, weighted[warp] = draw.weighted;
    best[warp] = draw.best, second[warp] = draw.second, token[warp] = draw.token;
  }
  __syncthreads();
  draw = Draw();
  if (lane_index() < warps_in_block()) {
    const int warp = lane_index();
    draw.top = top[warp], draw.total = total[warp], draw.weighted = weighted[warp];
    draw.best = best[warp], draw.second = second[warp], draw.token = token[warp];
  }
  return merge_warp(draw, factor);
}

// Logits of one row, 16 bytes at a time, padded with impossible tokens.
template <class Logit>
struct Row {
  static constexpr int width = full_width<Logit>;
  const Logit* logits;
  int64_t vocab;
  bool aligned;

  __device__ void read(int64_t first, float (&x)[width]) const {
    if (aligned && first + width <= vocab) {
      load(logits + first, x);
    } else {
#pragma unroll
      for (int c = 0; c < width; c++) x[c] = first + c < vocab ? to_float(logits[first + c]) : -INFINITY;
    }
  }
};

// e^(top / T - best) with some slack.
__device__ float lead_of(float top, float inverse, double best) {
  return exp2f(float(double(top) * inverse - best) * log2_e) * slack;
}

template <int width>
__device__ void draw_uniforms(Key key, int32_t token_index, int64_t first, float (&v)[width]) {
  key = {anew(key.low), anew(key.high)};  // otherwise the keys of the ten rounds occupy registers, and other values spill
#pragma unroll
  for (int b = 0; b < width / 4; b++) {
    const Philox words = philox(key, uint32_t(first / 4 + b), uint32_t(token_index), 0, 0);
#pragma unroll
    for (int c = 0; c < 4; c++) v[4 * b + c] = fine_uniform(words.word[c]);
  }
}

// One thread's share of the row; called by whole warps.
template <class Logit>
__device__ Draw draw_share(const Row<Logit>& row, float inverse, Key key, int32_t token_index) {
  constexpr int width = Row<Logit>::width;
  const float factor = inverse * log2_e;
  Draw mine;
  double warp_best = -INFINITY;
  float lead = INFINITY;  // e^(top / T - best score of the warp)
  const int64_t warp_first = int64_t{warp_index()} * 32 * width, step = int64_t{threads} * width;
  float x[width], next[width];
  row.read(warp_first + lane_index() * width, next);
  for (int64_t start = warp_first; start < row.vocab; start += step) {
    const int64_t first = start + lane_index() * width;
#pragma unroll
    for (int c = 0; c < width; c++) x[c] = next[c];
    row.read(first + step, next);  // loads while this one is processed
    float highest = x[0];
#pragma unroll
    for (int c = 1; c < width; c++) highest = fmaxf(highest, x[c]);  // ignores NaN, which shows in the sum
    if (highest > mine.top) {
      mine.raise_top(highest, factor);
      lead = lead_of(mine.top, inverse, warp_best);
    }
    float p[width], most = 0;
    mine.add(x, factor, p);
#pragma unroll
    for (int c = 0; c < width; c++) most = fmaxf(most, p[c]);
    if (!__any_sync(full_warp, most * lead >= least_gap)) continue;
    float v[width];
    draw_uniforms(key, token_index, first, v);
    unsigned candidates = 0;
#pragma unroll
    for (int c = 0; c < width; c++) candidates |= unsigned(v[c] <= p[c] * lead) << c;
    if (!__any_sync(full_warp, candidates != 0)) continue;
#pragma unroll
    for (int c = 0; c < width; c++) {
      if (candidates >> c & 1) mine.offer(double(x[c]) * inverse - double(logf(-log1pf(-v[c]))), int32_t(first + c));
    }
    warp_best = mine.best;
    for (int distance = 16; distance > 0; distance /= 2) {
      warp_best = fmax(warp_best, __shfl_xor_sync(full_warp, warp_best, distance));
    }
    lead = lead_of(mine.top, inverse, warp_best);
  }
  return mine;
}

// The most likely token: its score is its logit.
template <class Logit>
__device__ Draw greedy_share(const Row<Logit>& row) {
  constexpr int width = Row<Logit>::width;
  Draw mine;
  for (int64_t first = int64_t{threadIdx.x} * width; first < row.vocab; first += int64_t{threads} * width) {
    float x[width];
    row.read(first, x);
#pragma unroll
    for (int c = 0; c < width; c++) {
      if (x[c] > mine.top) mine.raise_top(x[c], log2_e), mine.token = int32_t(first + c);
    }
    float p[width];
    mine.add(x, log2_e, p);
  }
  mine.best = double(mine.top);
  return mine;
}

// The logarithms of core/cpu/vector.h, bit-identical to a CPU that fuses multiply-adds: only explicit fma may be fused
// here.
__device__ int32_t log_exponent(float x) { return (__float_as_int(x) - 0x3F3504F3) >> 23; }

__device__ float log_of_parts(int32_t exponent, float f) {
  const float k = float(exponent), s = __fdiv_rn(f, __fadd_rn(f, 2)), z = __fmul_rn(s, s);
  float r = 2.0f / 9;
  r = __fmaf_rn(r, z, 2.0f / 7);
  r = __fmaf_rn(r, z, 2.0f / 5);
  r = __fmul_rn(__fmaf_rn(r, z, 2.0f / 3), z);
  const float half_square = __fmul_rn(__fmul_rn(0.5f, f), f);
  const float low = __fmaf_rn(s, __fadd_rn(half_square, r), __fmul_rn(k, 0x1.7f7d1cp-20f));
  return __fmaf_rn(k, 0x1.62e4p-1f, __fadd_rn(f, -__fadd_rn(half_square, -low)));
}

__device__ float cpu_log(float x) {
  const int32_t k = log_exponent(x);
  return log_of_parts(k, __fadd_rn(__int_as_float(__float_as_int(x) - k * (1 << 23)), -1));
}

__device__ float cpu_log_one_minus(float v) {
  const int32_t k = log_exponent(__fadd_rn(1, -v));
  const float scale = __int_as_float((127 - k) << 23);
  return log_of_parts(k, __fadd_rn(__fadd_rn(scale, -1), -__fmul_rn(v, scale)));
}

// The token by the CPU's own scores, once the maximum is known.
template <class Logit>
__device__ int32_t exact_token(const Row<Logit>& row, float top, float inverse, Key key, int32_t token_index) {
  constexpr int width = Row<Logit>::width;
  Draw mine;
  for (int64_t first = int64_t{threadIdx.x} * width; first < row.vocab; first += int64_t{threads} * width) {
    float x[width], v[width];
    row.read(first, x);
    draw_uniforms(key, token_index, first, v);
#pragma unroll
    for (int c = 0; c < width; c++) {
      const float z = __fmul_rn(__fadd_rn(x[c], -top), inverse);
      mine.offer(double(__fadd_rn(z, -cpu_log(-cpu_log_one_minus(v[c])))), int32_t(first + c));
    }
  }
  return merge_block(mine, 0).token;
}

// Memory traffic: the bytes of each logit, once. Of a row of 151,936 logits a thread has about 150.
template <class Logit>
__global__ void __launch_bounds__(threads)
sample_kernel(int64_t vocab, const Logit* logits, int64_t stride, bool aligned, SampleInputs inputs, int32_t* tokens,
              float* log_probs, float* entropies) {
  wait_for_previous_kernel();
  const int64_t r = blockIdx.x;
  const Row<Logit> row = {logits + r * stride, vocab, aligned};
  const float temperature = inputs.temperatures[r];
  const bool greedy = temperature == 0;
  const float inverse = greedy ? 1 : 1 / temperature;
  const Key key = inputs.keys[r];
  const int32_t token_index = inputs.token_indices[r];
  const Draw mine = greedy ? greedy_share(row) : draw_share(row, inverse, key, token_index);
  const Draw draw = merge_block(mine, inverse * log2_e);
  int32_t token = draw.token;
  if (!greedy && draw.best - draw.second <= clear_lead) token = exact_token(row, draw.top, inverse, key, token_index);
  const bool finite = fabsf(draw.top) < INFINITY;
  if (!finite) token = 0;  // without scores, the first token
  if (threadIdx.x != 0) return;
  const float log_sum = logf(draw.total);
  tokens[r] = token;
  log_probs[r] = finite ? (to_float(row.logits[token]) - draw.top) * inverse - log_sum : NAN;
  entropies[r] = finite ? log_sum - float(ln2) * draw.weighted / draw.total : NAN;
}

}  // namespace

void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs, float* entropies, cudaStream_t stream) {
  if (logits.rows == 0 || logits.columns == 0) return;
  with_type(logits.type, [&](auto tag) {
    using Logit = typename decltype(tag)::type;
    const bool aligned = reinterpret_cast<uintptr_t>(logits.data) % 16 == 0 &&
                         (logits.rows == 1 || logits.stride % full_width<Logit> == 0);
    launch_early(sample_kernel<Logit>, dim3(unsigned(logits.rows)), dim3(threads), 0, stream, logits.columns,
                 static_cast<const Logit*>(logits.data), logits.stride, aligned, inputs, tokens, log_probs,
                 entropies);
  });
}

}  // namespace gigpo::cuda
