// Inputs of the transformer, built on the host and uploaded once per pass. Training: tokens of several sequences, concatenated without
// padding. Sampling: new tokens of running sequences.
#pragma once
#include <vector>

#include "core/arena.h"

namespace gigpo {

// Trees of token sequences (tries) in depth-first order: sequences with a common prefix share its tokens. The position of a token is its
// depth in its tree. The positions alone determine the attention mask.
struct PackedTokens {
  std::vector<int32_t> tokens, positions;
  std::vector<int32_t> wanted;  // indices of the tokens whose hidden states are returned; may repeat

  // Adds `count` tokens that continue the first `depth` tokens of the previously added sequence. A depth of 0 starts a new tree.
  void add(const int32_t* from, int64_t count, int64_t depth);
  int64_t size() const { return int64_t(tokens.size()); }
  // Uploads the attention mask of each of these windows (0: none); equal windows share one.
  std::vector<PackedRows> upload_rows(const std::vector<int64_t>& windows, Arena& arena) const;
};

// Uploads the sums of rows of the backward pass of a gather with these indices.
RowScatter upload_scatter(const std::vector<int32_t>& indices, Arena& arena);

// Allocates the maximum memory that a pass uploads: attention masks, indices and the sums of rows. For memory plans. `embeddings`: number of
// tokens whose embeddings are trained. `windows`: ModelConfig::windows.
void take_uploads(int64_t tokens, int64_t wanted, int64_t embeddings, const std::vector<int64_t>& windows, Arena& arena);

// New tokens of running sequences in a sampling step; see PagedBatch.
struct PagedTokens {
  std::vector<int32_t> tokens;  // -1 - j: token that the previous step sampled in row j
  std::vector<int32_t> positions, sequences, page_tables;
  int64_t table_stride = 0;
  std::vector<int32_t> wanted;  // indices of the tokens whose hidden states are returned

  // Pads the batch to these sizes, with padding tokens, rows of page tables, and hidden states that are not read.
  void fill(int64_t tokens, int64_t tables, int64_t wanted);

  // The batch in device memory.
  struct Uploaded {
    PagedBatch batch;
    const int32_t *tokens, *wanted;
    const int32_t* drawn;  // tokens that the previous step sampled
    int64_t count, wanted_count;
  };
  // Adds the arrays of the batch to `bundle`. The pointers in `uploaded` are set when the bundle is uploaded.
  void add_to(Arena::Bundle& bundle, Uploaded& uploaded) const;
};

}  // namespace gigpo
