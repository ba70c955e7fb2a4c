// Distribution of attention over packed sequences among the threads.
#pragma once
#include <algorithm>
#include <vector>

#include "core/device.h"

namespace gigpo::cpu {

constexpr int64_t query_block = 64;  // queries whose scores are computed at a time
constexpr int64_t key_group = 64;    // keys that are processed or skipped together
constexpr int64_t key_piece = 256;   // keys per task of the backward pass if a tree is split; a multiple of key_group

// Range [start, end) of tokens of a batch.
struct Tokens {
  int64_t start, end;
  int64_t count() const { return end - start; }
};

// Token ranges of the trees of a batch, in order. Sorting by length would balance better, but trees of one batch have similar lengths.
std::vector<Tokens> trees_of(const PackedRows& rows, int64_t tokens);

// Calls body(piece) for pieces of `size` tokens; the last one may be shorter.
template <class Body>
void each_piece(Tokens tokens, int64_t size, Body body) {
  for (int64_t first = tokens.start; first < tokens.end; first += size) body(Tokens{first, std::min(first + size, tokens.end)});
}

// Task of the backward pass: the gradients of these keys and queries in these heads.
struct BackwardPart {
  Tokens keys, queries;
  int64_t first_head, heads;  // query heads, which share one key head
  bool to_keys, to_queries;   // gradients that the task writes: of keys, summed over all queries; of queries, summed over all keys
};

// Tasks of the backward pass. One task per key head and tree computes each score once, for all gradients. Its time grows with the square of
// the tree's length. A task that would take twice an equal share of the total is split into pieces with separate tasks for gradients of
// keys and of queries: 7 products instead of 5. Results are bit-identical.
std::vector<BackwardPart> backward_parts(const std::vector<Tokens>& trees, int64_t heads, int64_t kv_heads, int threads);

}  // namespace gigpo::cpu
