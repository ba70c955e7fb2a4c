// How attention over packed rows is shared out among the threads.
#pragma once
#include <algorithm>
#include <vector>

#include "core/device.h"

namespace gigpo::cpu {

constexpr int64_t query_block = 64;  // queries whose scores are held at a time
constexpr int64_t key_group = 64;    // keys that are looked at, or left out, together
constexpr int64_t key_piece = 256;   // keys whose gradients are one task, where a tree is cut: whole groups

// The tokens [start, end) of a batch.
struct Tokens {
  int64_t start, end;
  int64_t count() const { return end - start; }
};

// Long trees first would balance better, but those of one batch are much alike.
std::vector<Tokens> trees_of(const PackedRows& rows, int64_t tokens);

// body(piece) for pieces of `size` tokens, the last of which may be shorter.
template <class Body>
void each_piece(Tokens tokens, int64_t size, Body body) {
  for (int64_t first = tokens.start; first < tokens.end; first += size) body(Tokens{first, std::min(first + size, tokens.end)});
}

// What a task of the backward pass computes: of the loss by these queries, in these heads, what reaches these keys.
struct BackwardPart {
  Tokens keys, queries;
  int64_t first_head, heads;  // of queries, with one key head
  bool to_keys, to_queries;   // which gradients it writes; those of keys are of all queries, those of queries of all keys
};

// One task for all that goes through a key head in a tree makes each score once, for all gradients. Where such a task (its time goes as
// the square of its tree) takes twice as long as an equal share of all, gradients of keys and of queries are made apart, in as many
// tasks as there are pieces: 7 products for 5. The bits are the same.
std::vector<BackwardPart> backward_parts(const std::vector<Tokens>& trees, int64_t heads, int64_t kv_heads, int threads);

}  // namespace gigpo::cpu
