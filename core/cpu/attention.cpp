#include "core/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/cpu/float_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/matmul.h"
#include "core/cpu/row_ranges.h"

namespace gigpo::cpu {
namespace {

constexpr int64_t query_block = 64;  // queries whose scores are held at a time
constexpr int64_t key_group = 64;    // keys that are looked at, or left out, together

// The tokens [start, end).
struct Tree {
  int64_t start, end;
};
struct KeyBlock {
  int64_t first, count;  // keys of the batch
  int64_t column;        // where their scores stand
  Tensor of(Tensor scores) const { return scores.column_range(column, count); }
};
// What some queries of a tree have to look at: its keys before them, less the groups that none of them sees. What stands together
// is one block, as far as a matrix product sums in one go: a row by itself has the bits of one product over all of its keys.
struct KeyBlocks {
  std::vector<KeyBlock> blocks;
  std::vector<int32_t> ends;
  SeenKeys seen;

  void find(const int32_t* all_ends, int64_t start, int64_t first_query, int64_t count) {
    const int64_t end = first_query + count;
    int64_t column = 0;
    blocks.clear();
    ends.resize((end - start + 15) / 16 * 16);
    for (int64_t first = start; first < end; first += key_group) {
      const int64_t keys = std::min(key_group, end - first);
      if (*std::max_element(all_ends + first, all_ends + first + keys) <= first_query) continue;
      std::copy_n(all_ends + first, keys, ends.begin() + column);
      const bool goes_on = !blocks.empty() && blocks.back().first + blocks.back().count == first && (first - start) % k_block != 0;
      if (goes_on) blocks.back().count += keys;
      else blocks.push_back({first, keys, column});
      column += keys;
    }
    const int64_t open = std::find_if(ends.begin(), ends.begin() + column, [&](int32_t e) { return e < end; }) - ends.begin();
    seen = {column, open, int32_t(first_query), ends.data()};
  }
};
// Matrices of one thread, their rows padded to whole vectors.
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

Tensor head(Tensor x, int64_t first, int64_t count, int64_t index, int64_t head_size) {
  return x.row_range(first, count).column_range(index * head_size, head_size);
}

void single(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate) {
  cpu::matmul_single({c.rows, c.columns, ta ? a.rows : a.columns, a.floats(), a.stride, ta, b.floats(), b.stride, tb,
                      c.floats(), c.stride, accumulate, nullptr});
}

// Long trees first would balance better, but those of one batch are much alike.
std::vector<Tree> trees_of(const PackedRows& rows, int64_t tokens) {
  std::vector<Tree> trees;
  for (int64_t token = 0; token < tokens; token = rows.ends[token]) trees.push_back({token, rows.ends[token]});
  return trees;
}

// T: what the cache holds. The others are f32.
template <class T>
void attend_pages(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch, const PagedCache& cache, Tensor out,
                     const PagedKernels<T>& kernels) {
  constexpr int64_t page = PagedCache::page_size;
  const int64_t kv_heads = k.columns / head_size, group = q.columns / k.columns, head_floats = head_size * page;
  T *const all_keys = static_cast<T*>(cache.keys.data), *const all_values = static_cast<T*>(cache.values.data);
  const auto pages_of = [&](int64_t t) { return batch.page_tables + batch.sequences[t] * batch.table_stride; };
  each_row_range(pool, q.rows, [&](int64_t first, int64_t count) {
    for (int64_t t = first; t < first + count; t++) {
      const int64_t position = batch.positions[t], at = pages_of(t)[position / page] * cache.keys.stride;
      for (int64_t h = 0; h < kv_heads; h++) {
        kernels.store(head_size, position % page, k.floats() + t * k.stride + h * head_size,
                      v.floats() + t * v.stride + h * head_size, all_keys + at + h * head_floats, all_values + at + h * head_floats);
      }
    }
  });
  // A task for each key head, since a batch of few rows would be work for one thread.
  const int64_t size = rows_in_range(pool, q.rows), ranges = (q.rows + size - 1) / size;
  pool.parallel_for(ranges * kv_heads, [&](int64_t task) {
    const int64_t first = task / kv_heads * size, count = std::min(size, q.rows - first), h = task % kv_heads;
    thread_local std::vector<PagedQuery> queries;
    for (int64_t t = first, next; t < first + count; t = next) {
      for (next = t + 1; next < first + count && batch.sequences[next] == batch.sequences[t];) next++;
      const Scratch scratch = scratch_of(kernels.rows, batch.positions[next - 1] + 1, 1);
      queries.clear();
      for (int64_t i = t; i < next; i++) {
        for (int64_t column = h * group * head_size; column < (h + 1) * group * head_size; column += head_size) {
          queries.push_back({q.floats() + i * q.stride + column, out.floats() + i * out.stride + column,
                             batch.positions[i] + 1});
        }
      }
      kernels.attend(int64_t(queries.size()), queries.data(), head_size, pages_of(t), all_keys + h * head_floats,
                     all_values + h * head_floats, cache.keys.stride, scale_of(head_size), scratch.data);
    }
  });
}

}  // namespace

void attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out,
               float* log_sums) {
  if (q.type == Type::bf16) {
    const FloatRows to(out, Access::write, pool);
    const FloatRows queries(q, Access::read, pool), keys(k, Access::read, pool), values(v, Access::read, pool);
    return attention(pool, queries.tensor(), keys.tensor(), values.tensor(), head_size, rows, to.tensor(), log_sums);
  }
  const AttentionKernels& kernels = attention_kernels(isa());
  const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size;
  // A task for each block of queries, so that one long row is work for many threads.
  struct Queries {
    int64_t tree, first, count;
  };
  std::vector<Queries> blocks;
  for (const auto& [start, end] : trees_of(rows, q.rows)) {
    for (int64_t first = start; first < end; first += query_block) blocks.push_back({start, first, std::min(query_block, end - first)});
  }
  pool.parallel_for(int64_t(blocks.size()) * heads, [&](int64_t task) {
    const auto [tree, first, count] = blocks[task / heads];
    const int64_t h = task % heads, kv = h * kv_heads / heads;
    thread_local KeyBlocks keys;
    keys.find(rows.ends, tree, first, count);
    const Tensor queries = head(q, first, count, h, head_size), result = head(out, first, count, h, head_size);
    const Tensor scores = scratch_of(query_block, keys.seen.columns, 1).matrix(0, count, keys.seen.columns);
    for (const KeyBlock& block : keys.blocks) {
      single(queries, false, head(k, block.first, block.count, kv, head_size), true, block.of(scores), false);
    }
    kernels.softmax(count, keys.seen, scores.floats(), scores.stride, scale_of(head_size), log_sums + first * heads + h, heads);
    for (const KeyBlock& block : keys.blocks) {
      single(block.of(scores), false, head(v, block.first, block.count, kv, head_size), false, result, block.column > 0);
    }
  });
}

void attention_backward(ThreadPool& pool, Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                        int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) {
  if (q.type == Type::bf16) {
    const FloatRows d(d_out, Access::read, pool), result(out, Access::read, pool);
    const FloatRows queries(q, Access::read, pool), keys(k, Access::read, pool), values(v, Access::read, pool);
    const FloatRows to_q(d_q, Access::write, pool), to_k(d_k, Access::write, pool), to_v(d_v, Access::write, pool);
    return attention_backward(pool, d.tensor(), queries.tensor(), keys.tensor(), values.tensor(), result.tensor(), log_sums, head_size,
                              rows, to_q.tensor(), to_k.tensor(), to_v.tensor());
  }
  const AttentionKernels& kernels = attention_kernels(isa());
  const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size, group = heads / kv_heads;
  // One task for all query heads of a key head: they add to the same keys.
  const std::vector<Tree> trees = trees_of(rows, q.rows);
  pool.parallel_for(int64_t(trees.size()) * kv_heads, [&](int64_t task) {
    const Tree& at = trees[task / kv_heads];
    const int64_t kv = task % kv_heads;
    const Scratch scratch = scratch_of(query_block, at.end - at.start, 2);
    KeyBlocks keys;
    for (const Tensor d_keys : {d_k, d_v}) clear(head(d_keys, at.start, at.end - at.start, kv, head_size));
    for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
      // From the last block down: the other order would give other bits.
      for (int64_t first = at.start + (at.end - at.start - 1) / query_block * query_block; first >= at.start; first -= query_block) {
        const int64_t count = std::min(query_block, at.end - first);
        keys.find(rows.ends, at.start, first, count);
        const Tensor queries = head(q, first, count, h, head_size), d = head(d_out, first, count, h, head_size);
        const Tensor result = head(out, first, count, h, head_size), d_queries = head(d_q, first, count, h, head_size);
        const Tensor p = scratch.matrix(0, count, keys.seen.columns), d_scores = scratch.matrix(1, count, keys.seen.columns);
        const auto of = [&](Tensor x, const KeyBlock& block) { return head(x, block.first, block.count, kv, head_size); };
        for (const KeyBlock& block : keys.blocks) {
          single(queries, false, of(k, block), true, block.of(p), false);
          single(d, false, of(v, block), true, block.of(d_scores), false);
        }
        kernels.probabilities(count, keys.seen, p.floats(), p.stride, scale_of(head_size), log_sums + first * heads + h, heads);
        kernels.scores_backward(count, keys.seen.columns, head_size, p.floats(), d_scores.floats(), p.stride, d.floats(),
                                d.stride, result.floats(), result.stride, scale_of(head_size));
        for (const KeyBlock& block : keys.blocks) {
          single(block.of(p), true, d, false, of(d_v, block), true);
          single(block.of(d_scores), true, queries, false, of(d_k, block), true);
          single(block.of(d_scores), false, of(k, block), false, d_queries, block.column > 0);
        }
      }
    }
  });
}

void paged_attention(ThreadPool& pool, Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                     const PagedCache& cache, Tensor out) {
  const AttentionKernels& kernels = attention_kernels(isa());
  if (cache.keys.type == Type::f32) return attend_pages(pool, q, k, v, head_size, batch, cache, out, kernels.paged);
  const FloatRows to(out, Access::write, pool);
  const FloatRows queries(q, Access::read, pool), keys(k, Access::read, pool), values(v, Access::read, pool);
  attend_pages(pool, queries.tensor(), keys.tensor(), values.tensor(), head_size, batch, cache, to.tensor(), kernels.paged_bf16);
}

}  // namespace gigpo::cpu
