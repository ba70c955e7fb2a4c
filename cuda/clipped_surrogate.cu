// The clipped surrogate of core/kernels/clipped_surrogate.h. Rows differ in length and the weights need totals over the
// batch, so it runs in stages: offsets of the rows, sums of each row, totals, tokens, report. A warp handles a row; all
// sums are in double and in a fixed order.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/reduce.cuh"

namespace gigpo::cuda {

namespace {

constexpr int one_block = 1024, warps = 8;

struct RowSums {
  double shift;  // Σ log p - log p_old over active tokens
  double policy, kl, ratio, clipped, dual_clipped;
  int64_t active;
};

struct Workspace {
  Normalizer* total;
  int64_t* offsets;  // [rows + 1]
  RowSums* sums;     // [rows]

  Workspace(void* memory, int64_t rows)
      : total(static_cast<Normalizer*>(memory)),
        offsets(reinterpret_cast<int64_t*>(total + 1)),
        sums(reinterpret_cast<RowSums*>(offsets + rows + 1)) {}
};

__global__ __launch_bounds__(one_block) void row_offsets(int64_t rows, const int32_t* lengths, int64_t* offsets) {
  scan_array(rows, lengths, offsets);
}

// Tokens [first, last) of this warp's row; false if there is no such row. Never beyond `tokens`, even if the lengths
// are wrong.
__device__ bool own_row(const ClippedSurrogateInput& input, const int64_t* offsets, int64_t* row, int64_t* first,
                        int64_t* last) {
  *row = int64_t(blockIdx.x) * warps + warp_index();
  if (*row >= input.rows) return false;
  *first = offsets[*row];
  *last = offsets[*row + 1];
  if (*first < 0) *first = 0;
  if (*last > input.tokens) *last = input.tokens;
  return true;
}

__global__ void count_rows(ClippedSurrogateInput input, const int64_t* offsets, RowSums* sums) {
  int64_t row, first, last;
  if (!own_row(input, offsets, &row, &first, &last)) return;  // a whole warp
  int64_t active = 0;
  double shift = 0;
  for (int64_t t = first + lane_index(); t < last; t += 32) {
    if (input.mask[t] == 0) continue;
    active++;
    shift += double(input.log_probs[t]) - double(input.old_log_probs[t]);
  }
  active = warp_sum(active);
  shift = warp_sum(shift);
  if (lane_index() != 0) return;
  sums[row] = RowSums();
  sums[row].active = active;
  sums[row].shift = shift;
}

__global__ __launch_bounds__(one_block) void total_rows(ClippedSurrogateInput input, const RowSums* sums,
                                                        Normalizer* total) {
  int64_t tokens = 0, rows = 0, longest = 0;
  for (int64_t row = threadIdx.x; row < input.rows; row += one_block) {
    if (sums[row].active == 0) continue;
    tokens += sums[row].active;
    rows++;
    if (input.row_lengths[row] > longest) longest = input.row_lengths[row];
  }
  tokens = block_sum(tokens);
  rows = block_sum(rows);
  __shared__ long long most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  atomicMax(&most, static_cast<long long>(longest));
  __syncthreads();
  if (threadIdx.x != 0) return;
  total->tokens = tokens;
  total->rows = rows;
  total->longest = most;
}

__global__ void token_losses(ClippedSurrogateInput input, ClippedSurrogateOptions options, const int64_t* offsets,
                             const Normalizer* total, RowSums* sums, float* gradient) {
  int64_t row, first, last;
  if (!own_row(input, offsets, &row, &first, &last)) return;  // a whole warp
  const int64_t active = sums[row].active;
  const double weight = total->weight(options.aggregation, options.fixed_length, active);
  const double mean_shift = active > 0 ? sums[row].shift / double(active) : 0;
  const bool has_reference = input.reference_log_probs != nullptr;
  double policy = 0, kl = 0, ratio = 0, clipped = 0, dual_clipped = 0;
  for (int64_t t = first + lane_index(); t < last; t += 32) {
    if (input.mask[t] == 0) {  // values of masked tokens are not read
      if (gradient) gradient[t] = 0;
      continue;
    }
    const double log_prob = input.log_probs[t];
    const double log_ratio =
        options.ratio == RatioLevel::sequence ? mean_shift : log_prob - double(input.old_log_probs[t]);
    const TokenLoss token = token_loss(log_prob, log_ratio, input.advantages[t], has_reference,
                                       has_reference ? input.reference_log_probs[t] : 0, options);
    policy += token.policy;
    kl += token.kl;
    ratio += token.ratio;
    clipped += token.clipped;
    dual_clipped += token.dual_clipped;
    if (gradient) gradient[t] = float(weight * token.gradient);
  }
  policy = warp_sum(policy);
  kl = warp_sum(kl);
  ratio = warp_sum(ratio);
  clipped = warp_sum(clipped);
  dual_clipped = warp_sum(dual_clipped);
  if (lane_index() != 0) return;
  RowSums& own = sums[row];
  own.policy = weight * policy;
  own.kl = weight * kl;
  own.ratio = ratio;
  own.clipped = clipped;
  own.dual_clipped = dual_clipped;
}

__global__ __launch_bounds__(one_block) void write_report(int64_t rows, const RowSums* sums, const Normalizer* total,
                                                          double kl_weight, ClippedSurrogateReport* report) {
  RowSums own = RowSums();
  for (int64_t row = threadIdx.x; row < rows; row += one_block) {
    if (sums[row].active == 0) continue;
    own.shift += sums[row].shift;
    own.policy += sums[row].policy;
    own.kl += sums[row].kl;
    own.ratio += sums[row].ratio;
    own.clipped += sums[row].clipped;
    own.dual_clipped += sums[row].dual_clipped;
  }
  ClippedSurrogateReport result;
  const double count = total->tokens > 0 ? double(total->tokens) : 1;
  result.policy_loss = block_sum(own.policy);
  result.kl = block_sum(own.kl);
  result.loss = result.policy_loss + (kl_weight != 0 ? kl_weight * result.kl : 0);
  result.clip_fraction = block_sum(own.clipped) / count;
  result.dual_clip_fraction = block_sum(own.dual_clipped) / count;
  result.policy_kl = -block_sum(own.shift) / count;
  result.ratio = block_sum(own.ratio) / count;
  result.active = total->tokens;
  if (threadIdx.x == 0) *report = result;
}

}  // namespace

size_t clipped_surrogate_workspace(int64_t rows) {
  return sizeof(Normalizer) + size_t(rows + 1) * sizeof(int64_t) + size_t(rows) * sizeof(RowSums);
}

void clipped_surrogate(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options, float* gradient,
                       ClippedSurrogateReport* report, void* workspace, cudaStream_t stream) {
  if (options.kl_weight != 0 && !input.reference_log_probs)
    throw Error("BAD_ARGUMENT", "a KL weight needs the reference policy's log-probabilities");
  const Workspace w(workspace, input.rows);
  const auto blocks = unsigned((input.rows + warps - 1) / warps);
  launch(row_offsets, 1, one_block, 0, stream, input.rows, input.row_lengths, w.offsets);
  if (blocks > 0) {
    launch(count_rows, blocks, 32 * warps, 0, stream, input, w.offsets, w.sums);
  }
  launch(total_rows, 1, one_block, 0, stream, input, w.sums, w.total);
  if (blocks > 0) {
    launch(token_losses, blocks, 32 * warps, 0, stream, input, options, w.offsets, w.total, w.sums, gradient);
  }
  launch(write_report, 1, one_block, 0, stream, input.rows, w.sums, w.total, options.kl_weight, report);
}

}  // namespace gigpo::cuda
