#include "core/cpu/attention.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/cpu/attention_parts.h"
#include "core/cpu/float_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/matmul.h"
#include "core/cpu/row_ranges.h"

namespace gigpo::cpu {
namespace {

struct KeyBlock {
  int64_t first, count;  // keys of the batch
  int64_t column;        // first column of their scores
  Tensor of(Tensor scores) const { return scores.column_range(column, count); }
};

// Keys that some queries of a tree must process: the keys before them, without the groups that none of the queries sees and without those
// before the first window. Adjacent keys form one block, up to the length that a matrix product sums in one chain, so that each row is
// bit-identical to one product over all its keys.
struct KeyBlocks {
  std::vector<KeyBlock> blocks;
  std::vector<int32_t> ends, begins;
  SeenKeys seen;

  // Finds the blocks within `keys`, whose start is the start of the tree plus a multiple of key_group.
  void find(const PackedRows& rows, Tokens keys, Tokens queries) {
    const int32_t* all_ends = rows.ends;
    const int64_t end = std::min(keys.end, queries.end);
    int64_t from = keys.start;
    if (rows.windowed()) {
      const int64_t first = *std::min_element(rows.starts + queries.start, rows.starts + queries.end);
      from += std::max<int64_t>(first - keys.start, 0) / key_group * key_group;
    }
    int64_t column = 0;
    blocks.clear();
    ends.resize(size_t(std::max<int64_t>(end - keys.start, 0) + 15) / 16 * 16);
    for (int64_t first = from; first < end; first += key_group) {
      const int64_t count = std::min(key_group, end - first);
      if (*std::max_element(all_ends + first, all_ends + first + count) <= queries.start) continue;
      std::copy_n(all_ends + first, count, ends.begin() + column);
      const bool goes_on = !blocks.empty() && blocks.back().first + blocks.back().count == first && (first - keys.start) % k_block != 0;
      if (goes_on) blocks.back().count += count;
      else blocks.push_back({first, count, column});
      column += count;
    }
    const int64_t open = std::find_if(ends.begin(), ends.begin() + column, [&](int32_t e) { return e < queries.end; }) - ends.begin();
    seen = {column, open, column - (end - queries.start), int32_t(queries.start), ends.data()};
    if (!rows.windowed()) return;
    begins.resize(queries.count());
    for (int64_t i = 0; i < queries.count(); i++) begins[i] = int32_t(column_of(rows.starts[queries.start + i]));
    seen.begins = begins.data();
  }
  SeenKeys of(const KeyBlock& block) const {
    return {block.count, std::clamp<int64_t>(seen.open - block.column, 0, block.count), seen.own - block.column, seen.first_query,
            seen.ends + block.column, seen.begins, block.column};
  }

 private:
  // Column of `token`, or of the first key after it if `token` is in no block.
  int64_t column_of(int64_t token) const {
    for (const KeyBlock& block : blocks) {
      if (token < block.first + block.count) return block.column + std::max<int64_t>(token - block.first, 0);
    }
    return seen.columns;
  }
};

// Matrices of one thread, with rows padded to whole vectors.
struct Scratch {
  float* data;
  int64_t rows, stride;
  Tensor matrix(int64_t index, int64_t count, int64_t columns) const {
    return {data + index * rows * stride, Type::f32, count, columns, stride};
  }
};

Scratch scratch_of(int64_t rows, int64_t columns, int64_t matrices) {
  thread_local AlignedFloats storage;
  const int64_t stride = (columns + 15) / 16 * 16;
  return {storage.reserve(rows * stride * matrices), rows, stride};
}

void clear(Tensor x) {
  for (int64_t r = 0; r < x.rows; r++) std::memset(x.row_range(r, 1).data, 0, x.columns * sizeof(float));
}

float scale_of(int64_t head_size) { return 1 / std::sqrt(float(head_size)); }

Tensor head(Tensor x, Tokens rows, int64_t index, int64_t head_size) {
  return x.row_range(rows.start, rows.count()).column_range(index * head_size, head_size);
}
Tokens tokens_of(const KeyBlock& block) { return {block.first, block.first + block.count}; }

void single(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate) {
  cpu::matmul_single({c.rows, c.columns, ta ? a.rows : a.columns, a.floats(), a.stride, ta, b.floats(), b.stride, tb,
                      c.floats(), c.stride, accumulate, nullptr});
}

// Paged attention; T is the element type of the KV cache.
template <class T>
void attend_pages(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch, const PagedCache& cache,
                  Tensor out, const PagedKernels<T>& kernels) {
  constexpr int64_t page = PagedCache::page_size;
  const int64_t kv_heads = k.columns / head_size, group = q.columns / k.columns, head_floats = head_size * page;
  T *const all_keys = static_cast<T*>(cache.keys.data), *const all_values = static_cast<T*>(cache.values.data);
  const auto pages_of = [&](int64_t t) { return batch.page_tables + batch.sequences[t] * batch.table_stride; };
  each_row_range(pool, q.rows, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; t++) {
      const int64_t position = batch.positions[t], at = pages_of(t)[position / page] * cache.keys.stride;
      const FloatRows key(k, t, 1, Access::read), value(v, t, 1, Access::read);
      for (int64_t h = 0; h < kv_heads; h++) {
        kernels.store(head_size, position % page, key.data + h * head_size, value.data + h * head_size,
                      all_keys + at + h * head_floats, all_values + at + h * head_floats);
      }
    }
  });
  // One task per key head and range of rows. For few rows the ranges are single rows; otherwise a small batch would run on one thread.
  const int64_t wanted = 4 * pool.size();
  const int64_t size = std::clamp<int64_t>(q.rows * kv_heads / wanted, 1, rows_in_range(pool, q.rows)), ranges = (q.rows + size - 1) / size;
  pool.parallel_for(ranges * kv_heads, [&](int64_t task) {
    const int64_t first = task / kv_heads * size, count = std::min(size, q.rows - first), h = task % kv_heads;
    const Tokens rows{first, first + count};
    const FloatRows query_rows(head(q, rows, h, group * head_size), Access::read), out_rows(head(out, rows, h, group * head_size), Access::write);
    thread_local std::vector<PagedQuery> queries;
    for (int64_t t = first, next; t < first + count; t = next) {
      for (next = t + 1; next < first + count && batch.sequences[next] == batch.sequences[t];) next++;
      const Scratch scratch = scratch_of(kernels.rows, batch.positions[next - 1] + 1, 1);
      queries.clear();
      for (int64_t i = t; i < next; i++) {
        for (int64_t column = 0; column < group * head_size; column += head_size) {
          queries.push_back({query_rows.data + (i - first) * query_rows.stride + column, out_rows.data + (i - first) * out_rows.stride + column,
                             std::max<int64_t>(batch.window > 0 ? batch.positions[i] + 1 - batch.window : 0, 0), batch.positions[i] + 1});
        }
      }
      kernels.attend(int64_t(queries.size()), queries.data(), head_size, pages_of(t), all_keys + h * head_floats,
                     all_values + h * head_floats, cache.keys.stride, scale_of(head_size), scratch.data);
    }
  });
}

}  // namespace

int64_t attention_bytes(const AttentionSizes& sizes, Type type, int threads) {
  const auto whole_vectors = [](int64_t columns) { return (columns + 15) / 16 * 16; };
  int64_t scores = PagedKernels<float>::rows * whole_vectors(sizes.positions), widened = 0, sums = 0;
  if (sizes.tokens > 0) {
    scores = std::max({scores, query_block * whole_vectors(sizes.tokens), 2 * query_block * k_block});
    if (type == Type::bf16) {
      widened = (4 * k_block + 2 * query_block) * sizes.head_size;  // maximum over all pieces of a task
      sums = 2 * sizes.tokens * sizes.key_columns;
    }
  }
  return (threads * (scores + widened) + sums) * int64_t{sizeof(float)};
}

void attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out,
               float* log_sums, const AttentionParts& in_parts) {
  const AttentionKernels& kernels = attention_kernels(isa());
  const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size;
  // One task per block of queries, so that a single long sequence is distributed over many threads.
  struct Block {
    Tokens tree, queries;
  };
  std::vector<Block> blocks;
  int64_t longest = 0;
  for (const Tokens& tree : trees_of(rows, q.rows)) {
    longest = std::max(longest, tree.count());
    each_piece(tree, query_block, [&](Tokens queries) { blocks.push_back({tree, queries}); });
  }
  const auto attend = [&](int64_t task) {
    const auto& [tree, at] = blocks[task / heads];
    const int64_t h = task % heads, kv = h * kv_heads / heads;
    thread_local KeyBlocks keys;
    keys.find(rows, tree, at);
    const FloatRows queries(head(q, at, h, head_size), Access::read), result(head(out, at, h, head_size), Access::write);
    const Tensor scores = scratch_of(query_block, keys.seen.columns, 1).matrix(0, at.count(), keys.seen.columns);
    for (const KeyBlock& block : keys.blocks) {
      const FloatRows widened(head(k, tokens_of(block), kv, head_size), Access::read);
      single(queries.tensor(), false, widened.tensor(), true, block.of(scores), false);
    }
    kernels.softmax(at.count(), keys.seen, scores.floats(), scores.stride, scale_of(head_size), log_sums + at.start * heads + h, heads);
    for (const KeyBlock& block : keys.blocks) {
      const FloatRows widened(head(v, tokens_of(block), kv, head_size), Access::read);
      single(block.of(scores), false, widened.tensor(), false, result.tensor(), block.column > 0);
    }
  };
  in_parts(int64_t(blocks.size()) * heads, longest, [&](int64_t first, int64_t count) {
    pool.parallel_for(count, [&](int64_t task) { attend(first + task); });
  });
}

void attention_backward(ThreadPool& pool, Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                        int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) {
  const AttentionKernels& kernels = attention_kernels(isa());
  const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size, group = heads / kv_heads;
  const float scale = scale_of(head_size);
  // Gradients of keys and values are summed over queries and heads in fp32.
  const FloatRows sums_k(d_k, Access::write, &pool), sums_v(d_v, Access::write, &pool);
  const std::vector<BackwardPart> parts = backward_parts(trees_of(rows, q.rows), heads, kv_heads, pool.size());
  pool.parallel_for(int64_t(parts.size()), [&](int64_t task) {
    const BackwardPart& part = parts[task];
    const int64_t kv = part.first_head / group;
    const Scratch scratch = scratch_of(query_block, k_block, 2);
    thread_local KeyBlocks keys;
    for (const Tensor sums : {sums_k.tensor(), sums_v.tensor()}) {
      if (part.to_keys) clear(head(sums, part.keys, kv, head_size));
    }
    const auto of_queries = [&](int64_t h, Tokens at) {
      keys.find(rows, part.keys, at);
      if (keys.blocks.empty()) return;  // all keys are hidden by windows or belong to other blocks
      const auto own = [&](Tensor x) { return head(x, at, h, head_size); };
      const FloatRows queries(own(q), Access::read), d(own(d_out), Access::read), result(own(out), Access::read);
      const FloatRows d_queries(part.to_queries ? own(d_q) : Tensor{}, Access::write);
      for (const KeyBlock& block : keys.blocks) {
        const auto of = [&](Tensor x) { return head(x, tokens_of(block), kv, head_size); };
        const FloatRows key(of(k), Access::read), value(of(v), Access::read);
        const Tensor p = scratch.matrix(0, at.count(), block.count), d_scores = scratch.matrix(1, at.count(), block.count);
        single(queries.tensor(), false, key.tensor(), true, p, false);
        single(d.tensor(), false, value.tensor(), true, d_scores, false);
        kernels.probabilities(p.rows, keys.of(block), p.floats(), p.stride, scale, log_sums + at.start * heads + h, heads);
        kernels.scores_backward(p.rows, p.columns, head_size, p.floats(), d_scores.floats(), p.stride, d.data, d.stride, result.data,
                                result.stride, scale);
        if (part.to_keys) {
          single(p, true, d.tensor(), false, of(sums_v.tensor()), true);
          single(d_scores, true, queries.tensor(), false, of(sums_k.tensor()), true);
        }
        if (part.to_queries) single(d_scores, false, key.tensor(), false, d_queries.tensor(), block.column > 0);
      }
    };
    for (int64_t h = part.first_head; h < part.first_head + part.heads; h++) {
      // From the last block to the first; another order would change the last bits.
      const int64_t last = part.queries.start + (part.queries.count() - 1) / query_block * query_block;
      for (int64_t first = last; first >= part.queries.start; first -= query_block)
        of_queries(h, {first, std::min(first + query_block, part.queries.end)});
    }
  });
}

void paged_attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                     const PagedCache& cache, Tensor out) {
  const AttentionKernels& kernels = attention_kernels(isa());
  if (cache.keys.type == Type::f32) return attend_pages(pool, q, k, v, head_size, batch, cache, out, kernels.paged);
  attend_pages(pool, q, k, v, head_size, batch, cache, out, kernels.paged_bf16);
}

}  // namespace gigpo::cpu
