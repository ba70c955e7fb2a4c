// Attention over pages of running sequences, bf16. A block handles up to 16 or 32 rows of one key head, which share its
// keys: the query heads that read it, for adjacent tokens of one sequence. Its first token is the first of its sequence
// in the batch, or at a multiple of the number of tokens that fit in a block. Blocks of other tokens return at once, so
// the grid is the same for every batch of T tokens.
//
// A row's bits depend only on its own keys, because the order of sums is determined by positions in the sequence:
//   - the pages of each span of 512 tokens are distributed over four warps round-robin, each with a running maximum (as in cuda/attention.cu);
//   - the four sums of a span are added in order, then the spans in order.
// Rows of a product on the tensor cores are independent, and keys that a row does not see have weight exactly 0 and
// leave its maximum unchanged. Whether one block iterates over the spans, or each span has a block and the last to
// finish adds them up (small batches, to fill the GPU), affects only speed.
//
// While a warp computes on a page its next one loads: 8 KB at head size 128, times the 8 to 12 warps of a
// multiprocessor, is several times the amount needed to hide memory latency.
#include "cuda/attention.h"
#include "cuda/attention_general.cuh"
#include "cuda/attention_sums.cuh"
#include "cuda/launch.h"

namespace gigpo::cuda {

namespace {

constexpr int warps = 4, threads = warps * 32;
constexpr int span_pages = 32, span = span_pages * page_size, warp_pages = span_pages / warps;
constexpr int most_rows = 32;                // of a block
constexpr int64_t enough_blocks = paged_attention_counters;  // to fill a GPU
constexpr int64_t long_batch = 512;          // tokens from which rows of one sequence are likely to share blocks

struct Arguments {
  const __nv_bfloat16 *q, *keys, *values;
  __nv_bfloat16* out;
  int64_t q_stride, key_stride, value_stride, out_stride;  // of a token; of a page
  PagedBatch batch;
  int tokens, heads, kv_heads, spans;
  int window;          // number of tokens that a token sees, including itself; 0: all
  float scale;         // c = log2(e) / √D
  float* span_values;  // [T][heads][spans][D], if blocks share the spans of a row
  RowSum* span_sums;   // [T][heads][spans]
  unsigned* arrivals;  // [T][kv_heads], counters of blocks that share spans

  __device__ int64_t span_index(int64_t token, int head, int which_span) const {
    return (token * heads + head) * spans + which_span;
  }
};

// The rows of a block: tokens [token, token + count) at positions [position, last], `group` query heads each.
struct Rows {
  int token, count, position, group, kv_head;
  bool padding;

  __device__ int size() const { return count * group; }
  __device__ int last() const { return position + count - 1; }
  __device__ int token_of(int row) const { return token + row / group; }
  __device__ int head_of(int row) const { return kv_head * group + row % group; }
  __device__ int position_of(int row) const { return position + row / group; }
  // First token that one of the rows sees. Earlier pages are skipped, which changes no bit of the rows that do not see
  // them.
  template <bool windowed>
  __device__ int first_seen(const Arguments& at) const {
    return windowed ? max(position + 1 - at.window, 0) : 0;
  }
};

// Rows of this block; none unless its token is the first.
__device__ Rows rows_of(const Arguments& at, int room) {
  Rows rows = {int(blockIdx.x), 0, 0, at.heads / at.kv_heads, int(blockIdx.y), false};
  const int32_t* sequences = at.batch.sequences;
  const int token = rows.token, sequence = sequences[token], tokens = room / rows.group;
  rows.padding = sequence < 0;
  if (rows.padding) return rows;
  rows.position = at.batch.positions[token];
  const int offset = rows.position % tokens;
  if (offset != 0 && token > 0 && sequences[token - 1] == sequence) return rows;
  const int lane = lane_index();
  const bool joins = offset + lane < tokens && token + lane < at.tokens && sequences[token + lane] == sequence;
  const unsigned others = ~__ballot_sync(full_warp, joins);
  rows.count = others == 0 ? 32 : __ffs(int(others)) - 1;
  return rows;
}

template <int D, int row_tiles>
struct Shared {
  static constexpr int rows = row_tiles * 16;
  // [queries [rows][D]] [warps][2][keys, values][page_size][D]; the latter are finally reused for each warp's sums
  // [rows][D] in fp32.
  static constexpr int warp_elements = 4 * page_size * D;
  static_assert(warp_elements * sizeof(__nv_bfloat16) >= rows * D * sizeof(float));
  __nv_bfloat16* elements = dynamic_shared<__nv_bfloat16>();
  RowSum (*warp_sums)[rows] = reinterpret_cast<RowSum (*)[rows]>(elements + rows * D + warps * warp_elements);
  float (*factors)[rows] = reinterpret_cast<float (*)[rows]>(warp_sums + warps);  // to the span's maximum
  RowSum* total = reinterpret_cast<RowSum*>(factors + warps);
  Fold* folds = reinterpret_cast<Fold*>(total + rows);

  static constexpr size_t bytes() {
    return (rows * D + warps * warp_elements) * sizeof(__nv_bfloat16) +
           rows * (warps * (sizeof(RowSum) + sizeof(float)) + sizeof(RowSum) + sizeof(Fold));
  }

  __device__ HeadTile<D> queries() const { return {elements}; }
  __device__ HeadTile<D> keys(int warp, int stage) const {
    return {elements + rows * D + warp * warp_elements + stage * 2 * page_size * D};
  }
  __device__ HeadTile<D> values(int warp, int stage) const { return {keys(warp, stage).data + page_size * D}; }
  // Columns are permuted so that rows of a product are in different banks.
  __device__ float* sum(int warp, int row, int column) const {
    constexpr int turns = D >= 32 ? 4 : 2;
    return reinterpret_cast<float*>(keys(warp, 0).data) + row * D + (column ^ row % turns * 8);
  }
};

template <int D, int row_tiles>
__device__ void copy_queries(const Arguments& at, const Rows& rows, const HeadTile<D>& to) {
  constexpr int chunks = HeadTile<D>::chunks;
  for (int i = int(threadIdx.x); i < row_tiles * 16 * chunks; i += threads) {
    const int row = i / chunks, index = i % chunks;
    const bool valid = row < rows.size();
    const int64_t from = valid ? rows.token_of(row) * at.q_stride + rows.head_of(row) * D + index * 8 : 0;
    copy_async_16(to.chunk(row, index), at.q + from, valid);
  }
  copy_async_commit();
}

// Writes a warp's sums over its pages of a span to shared memory.
template <int D, int row_tiles, bool windowed>
__device__ void sum_pages(const Arguments& at, const Rows& rows, const Shared<D, row_tiles>& shared, int which_span) {
  const int warp = warp_index(), lane = lane_index(), last = rows.last();
  const int first_page = which_span * span_pages + warp;  // and every fourth after it
  const int behind = min(which_span * span_pages + span_pages, last / page_size + 1);
  const int count = (behind - first_page + warps - 1) / warps;
  const int hidden = rows.first_seen<windowed>(at) / page_size - first_page;  // pages of the four warps
  const int skipped = windowed ? max((hidden + warps - 1) / warps, 0) : 0;
  const int32_t* table = at.batch.page_tables + at.batch.sequences[rows.token] * at.batch.table_stride;
  const int own_page = lane < warp_pages && lane < count ? table[first_page + lane * warps] : 0;
  const auto copy_page = [&](int i, int stage) {
    if (i < count) {
      const int64_t page = __shfl_sync(full_warp, own_page, i), head = int64_t(rows.kv_head) * page_size * D;
      const int limit = last + 1 - (first_page + i * warps) * page_size;  // memory beyond may hold anything, even NaN
      shared.keys(warp, stage).template copy_from<page_size, 32>(at.keys + page * at.key_stride + head, D, 0, limit);
      shared.values(warp, stage).template copy_from<page_size, 32>(at.values + page * at.value_stride + head, D, 0, limit);
    }
    copy_async_commit();
  };
  int last_seen[row_tiles][2];
#pragma unroll
  for (int r = 0; r < row_tiles * 2; r++) {
    last_seen[r / 2][r % 2] = min(rows.position_of(r * 8 + lane / 4), last);
  }

  PageQueries<D, row_tiles> queries(shared.queries());
  queries.load();
  WarpSums<D, row_tiles> sums;
  sums.clear_all();
  copy_page(skipped, skipped % 2);
  for (int i = skipped; i < count; i++) {
    const int stage = i % 2;
    copy_page(i + 1, stage ^ 1);
    copy_async_wait<1>();
    __syncwarp();
    sums.template add_page<windowed>(queries, shared.keys(warp, stage), shared.values(warp, stage),
                                     (first_page + i * warps) * page_size, last_seen, at.window, at.scale);
    __syncwarp();  // the page is no longer in use
  }
  copy_async_wait<0>();
  __syncwarp();
#pragma unroll
  for (int r = 0; r < row_tiles; r++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = r * 16 + half * 8 + lane / 4;
      const float sum = quad_sum(sums.rows[r][half].sum);
      if (lane % 4 == 0) shared.warp_sums[warp][row] = {sums.rows[r][half].max, sum};
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        *reinterpret_cast<float2*>(shared.sum(warp, row, n * 8 + lane % 4 * 2)) =
            make_float2(sums.out[r][n][half * 2], sums.out[r][n][half * 2 + 1]);
      }
    }
  }
}

// Combines one row's four sums of a span, in one thread; `factors` are the weights of their values.
template <int D, int row_tiles>
__device__ RowSum span_sum(const Shared<D, row_tiles>& shared, int row, float scale) {
  RowSum total = {-INFINITY, 0};
  for (int warp = 0; warp < warps; warp++) total.max = fmaxf(total.max, shared.warp_sums[warp][row].max);
  for (int warp = 0; warp < warps; warp++) {
    const RowSum part = shared.warp_sums[warp][row];
    const float factor = rescale(part.max, total.max, scale);
    shared.factors[warp][row] = factor;
    total.sum = fmaf(part.sum, factor, total.sum);
  }
  return total;
}

template <int D, int row_tiles>
__device__ float span_value(const Shared<D, row_tiles>& shared, int row, int column) {
  float value = 0;
  for (int warp = 0; warp < warps; warp++) value = fmaf(*shared.sum(warp, row, column), shared.factors[warp][row], value);
  return value;
}

__device__ void write_zeros(const Arguments& at, const Rows& rows, int head_size) {
  const int size = rows.group * head_size;
  __nv_bfloat16* out = at.out + rows.token * at.out_stride + rows.kv_head * size;
  for (int i = int(threadIdx.x); i < size; i += threads) out[i] = __float2bfloat16_rn(0);
}

template <int D>
__device__ void write_value(const Arguments& at, const Rows& rows, int row, int column, float value, float sum) {
  at.out[rows.token_of(row) * at.out_stride + rows.head_of(row) * D + column] = __float2bfloat16_rn(value * (1 / sum));
}

// A block iterates over all spans of its rows.
template <int D, int row_tiles, bool windowed>
__global__ __launch_bounds__(threads, row_tiles == 1 ? 3 : 2) void sequence_kernel(Arguments at) {
  wait_for_previous_kernel();
  const Shared<D, row_tiles> shared;
  const Rows rows = rows_of(at, row_tiles * 16);
  if (rows.padding) write_zeros(at, rows, D);
  if (rows.count == 0) return;
  copy_queries<D, row_tiles>(at, rows, shared.queries());
  const int own_row = int(threadIdx.x);
  if (own_row < rows.size()) shared.total[own_row] = {-INFINITY, 0};
  copy_async_wait<0>();
  __syncthreads();

  // Used once per span: at head size 128 these are in the thread's local memory, so the inner loop has the registers.
  constexpr int own_values = row_tiles * 16 * D / threads;
  [[maybe_unused]] constexpr int unrolled = D == 128 ? 1 : own_values;
  float values[own_values] = {};
  for (int which_span = rows.first_seen<windowed>(at) / span; which_span * span <= rows.last(); which_span++) {
    sum_pages<D, row_tiles, windowed>(at, rows, shared, which_span);
    __syncthreads();
    if (own_row < rows.size())
      shared.folds[own_row] = Fold::of(shared.total[own_row], span_sum(shared, own_row, at.scale), at.scale);
    __syncthreads();
#pragma unroll unrolled
    for (int i = 0; i < own_values; i++) {
      const int element = int(threadIdx.x) + i * threads, row = element / D;
      if (row < rows.size()) values[i] = shared.folds[row].of(values[i], span_value(shared, row, element % D));
    }
    __syncthreads();  // the memory of the pages is free
  }
#pragma unroll unrolled
  for (int i = 0; i < own_values; i++) {
    const int element = int(threadIdx.x) + i * threads, row = element / D;
    if (row < rows.size()) write_value<D>(at, rows, row, element % D, values[i], shared.total[row].sum);
  }
}

// Whether this block is the last of `blocks` to call this. The last one sees all their writes, and the counter is 0
// again.
__device__ bool comes_last(unsigned* counter, unsigned blocks) {
  __syncthreads();  // all writes of the block come before
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(counter, blocks - 1) == blocks - 1;
    __threadfence();
  }
  return __syncthreads_or(last);
}

// Adds up the spans of a block's rows from `first_span` on, in order; sums of several elements and spans are loaded
// concurrently.
template <int D>
__device__ void fold_spans(const Arguments& at, const Rows& rows, int first_span) {
  constexpr int at_once = 4;
  const int size = rows.size() * D, spans = rows.last() / span + 1;
#pragma unroll 1
  for (int first = int(threadIdx.x); first < size; first += at_once * threads) {
    const auto element = [&](int e) { return min(first + e * threads, size - 1); };
    const RowSum* sums[at_once];
    const float* values[at_once];
    RowSum totals[at_once];
    float found[at_once];
#pragma unroll
    for (int e = 0; e < at_once; e++) {
      const int row = element(e) / D;
      const int64_t index = at.span_index(rows.token_of(row), rows.head_of(row), 0);
      sums[e] = at.span_sums + index;
      values[e] = at.span_values + index * D + element(e) % D;
      totals[e] = {-INFINITY, 0};
      found[e] = 0;
    }
#pragma unroll 4
    for (int i = first_span; i < spans; i++) {
#pragma unroll
      for (int e = 0; e < at_once; e++) {
        const float value = values[e][i * D];
        const Fold fold = Fold::of(totals[e], sums[e][i], at.scale);
        found[e] = fold.of(found[e], value);
      }
    }
#pragma unroll
    for (int e = 0; e < at_once; e++) {
      if (first + e * threads < size) write_value<D>(at, rows, element(e) / D, element(e) % D, found[e], totals[e].sum);
    }
  }
}

// A block handles every n-th span of its rows, and writes their sums to the workspace.
template <int D, int row_tiles, bool windowed>
__global__ __launch_bounds__(threads, row_tiles == 1 ? 3 : 2) void span_kernel(Arguments at) {
  wait_for_previous_kernel();
  const Shared<D, row_tiles> shared;
  const Rows rows = rows_of(at, row_tiles * 16);
  if (rows.padding && blockIdx.z == 0) write_zeros(at, rows, D);
  const int first_span = rows.first_seen<windowed>(at) / span, own_span = first_span + int(blockIdx.z);
  if (rows.count == 0 || own_span * span > rows.last()) return;
  copy_queries<D, row_tiles>(at, rows, shared.queries());
  copy_async_wait<0>();
  for (int which_span = own_span; which_span * span <= rows.last(); which_span += int(gridDim.z)) {
    __syncthreads();  // the queries have arrived, and the memory of the pages is free
    sum_pages<D, row_tiles, windowed>(at, rows, shared, which_span);
    __syncthreads();
    const auto index = [&](int row) { return at.span_index(rows.token_of(row), rows.head_of(row), which_span); };
    const int own_row = int(threadIdx.x);
    if (own_row < rows.size()) at.span_sums[index(own_row)] = span_sum(shared, own_row, at.scale);
    __syncthreads();
#pragma unroll 1
    for (int element = int(threadIdx.x); element < rows.size() * D; element += threads) {
      const int row = element / D, column = element % D;
      at.span_values[index(row) * D + column] = span_value(shared, row, column);
    }
  }
  const unsigned blocks = min(gridDim.z, unsigned(rows.last() / span + 1 - first_span));  // that these rows have
  if (comes_last(at.arrivals + rows.token * at.kv_heads + rows.kv_head, blocks)) fold_spans<D>(at, rows, first_span);
}

int64_t spans_of(int64_t table_stride) { return (table_stride + span_pages - 1) / span_pages; }

// Whether the spans of a sequence are distributed over blocks: in small batches that may have long sequences.
bool splits(int64_t tokens, int64_t kv_heads, int64_t table_stride) {
  return spans_of(table_stride) > 1 && tokens * kv_heads < enough_blocks;
}

template <int D, int row_tiles>
void launch_rows(const Arguments& arguments, bool split, cudaStream_t stream) {
  const int64_t blocks = int64_t(arguments.tokens) * arguments.kv_heads, share = (2 * enough_blocks + blocks - 1) / blocks;
  const dim3 grid(unsigned(arguments.tokens), unsigned(arguments.kv_heads),
                  split ? unsigned(std::min<int64_t>(share, arguments.spans)) : 1);
  with_windows(arguments.window > 0, [&](auto windowed) {
    launch_early(split ? span_kernel<D, row_tiles, windowed> : sequence_kernel<D, row_tiles, windowed>, grid, dim3(threads),
                 Shared<D, row_tiles>::bytes(), stream, arguments);
  });
}

template <int D>
void launch_paged(const Arguments& arguments, bool split, cudaStream_t stream) {
  const bool many_rows = arguments.tokens > long_batch || arguments.heads / arguments.kv_heads > 16;
  if (many_rows) launch_rows<D, 2>(arguments, split, stream);
  else launch_rows<D, 1>(arguments, split, stream);
}

}  // namespace

size_t paged_attention_workspace(int64_t tokens, int64_t heads, int64_t kv_heads, int64_t head_size, int64_t table_stride) {
  if (!splits(tokens, kv_heads, table_stride)) return 0;
  return size_t(tokens * heads * spans_of(table_stride)) * (size_t(head_size) * sizeof(float) + sizeof(RowSum));
}

void paged_attention(Tensor q, int64_t kv_heads, int64_t head_size, const PagedBatch& batch, const PagedCache& cache, Tensor out,
                     void* workspace, unsigned* counters, cudaStream_t stream) {
  if (q.rows == 0) return;
  const int64_t heads = q.columns / head_size;
  if (!in_tiles(q, head_size) || !in_tiles(cache.keys, head_size) || !in_tiles(cache.values, head_size) ||
      heads / kv_heads > most_rows) {
    general::paged_attention(q, kv_heads, head_size, batch, cache, out, stream);
    return;
  }
  const bool split = splits(q.rows, kv_heads, batch.table_stride);
  const int64_t spans = spans_of(batch.table_stride);
  auto* span_values = static_cast<float*>(workspace);
  auto* span_sums = reinterpret_cast<RowSum*>(span_values + (split ? q.rows * heads * spans * head_size : 0));
  const Arguments arguments = {bf16_of(q), bf16_of(cache.keys), bf16_of(cache.values), bf16_of(out), q.stride,
                               cache.keys.stride, cache.values.stride, out.stride, batch, int(q.rows), int(heads),
                               int(kv_heads), int(spans), int(batch.window), float(1.4426950408889634 / std::sqrt(double(head_size))),
                               span_values, span_sums, counters};
  switch (head_size) {
    case 16: return launch_paged<16>(arguments, split, stream);
    case 32: return launch_paged<32>(arguments, split, stream);
    case 64: return launch_paged<64>(arguments, split, stream);
    default: return launch_paged<128>(arguments, split, stream);
  }
}

}  // namespace gigpo::cuda
