// What the transformer is given: tokens of several rows, one after the other and without padding, for training; new tokens of
// running sequences, for sampling. Built on the host, uploaded once a pass.
#pragma once
#include <vector>

#include "core/arena.h"

namespace gigpo {

// Trees of token sequences (tries), written depth first: sequences that begin alike share their beginning. A token's position is its
// depth in its tree, and that alone tells who sees whom.
struct PackedTokens {
  std::vector<int32_t> tokens, positions;
  std::vector<int32_t> wanted;  // which tokens' hidden states are asked for; they may repeat

  // Tokens that follow the first `depth` tokens of the sequence that was added last; 0 begins a tree.
  void add(const int32_t* from, int64_t count, int64_t depth);
  int64_t size() const { return int64_t(tokens.size()); }
  PackedRows upload_rows(Arena& arena) const;
};

// Sums rows by where `indices` sends them: the backward pass of a gather.
RowScatter upload_scatter(const std::vector<int32_t>& indices, Arena& arena);

// Takes from the arena what a pass of so many tokens uploads at most: who sees whom, what is where, and the sums by it;
// `embeddings`: how many are trained.
void take_uploads(int64_t tokens, int64_t wanted, int64_t embeddings, Arena& arena);

// New tokens of running sequences; see PagedBatch.
struct PagedTokens {
  std::vector<int32_t> tokens;  // -1 - j: the one that the step before drew in row j
  std::vector<int32_t> positions, sequences, page_tables;
  int64_t table_stride = 0;
  std::vector<int32_t> wanted;  // which tokens' hidden states are asked for

  // Makes the batch larger: by tokens of no sequence, rows of page tables, and hidden states that nobody reads.
  void fill(int64_t tokens, int64_t tables, int64_t wanted);

  // In device memory.
  struct Uploaded {
    PagedBatch batch;
    const int32_t *tokens, *wanted;
    const int32_t* drawn;  // by the step before
    int64_t count, wanted_count;
  };
  // The pointers are set once the bundle is uploaded.
  void add_to(Arena::Bundle& bundle, Uploaded& uploaded) const;
};

}  // namespace gigpo
