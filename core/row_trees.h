// Prefix sharing in training. Sequences of a batch with a common prefix form a tree; the shared prefix is computed once.
#pragma once
#include <vector>

#include "core/training_batch.h"

namespace gigpo {

// Sequence of a tree. Its first `shared` tokens equal those of the previous sequence of the tree.
struct Branch {
  const BatchRows::Row* row;
  int64_t shared;
};

struct RowTree {
  std::vector<Branch> branches;
  int64_t tokens = 0, wanted = 0;  // tokens that are computed; tokens whose hidden states are returned

  // Tokens of a sequence that are computed: all but the last, which predicts nothing.
  static int64_t computed(const BatchRows& batch, const BatchRows::Row& row) { return batch.length(row) - 1; }
};

// Groups all sequences of a batch into trees. A tree of several sequences has at most `most` tokens and at most `most` wanted hidden states.
// Trees are ordered by their first sequence, so sequences that share nothing keep their order. Without `share`, each sequence is a tree.
std::vector<RowTree> row_trees(const BatchRows& batch, int64_t most, bool share);

}  // namespace gigpo
