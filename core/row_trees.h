// Which rows of a batch are computed together. Rows that begin alike form a tree, whose shared beginnings are computed once.
#pragma once
#include <vector>

#include "core/training_batch.h"

namespace gigpo {

// A row, of which the first `shared` tokens are those of the row before it in the same tree.
struct Branch {
  const BatchRows::Row* row;
  int64_t shared;
};

struct RowTree {
  std::vector<Branch> branches;
  int64_t tokens = 0, wanted = 0;  // that are computed, and asked for

  // The row's last token is not computed: nothing follows it.
  static int64_t computed(const BatchRows& batch, const BatchRows::Row& row) { return batch.length(row) - 1; }
};

// Every row once. A tree of several rows has at most `most` tokens, and is asked for at most as many; trees stand in the order of
// their first rows, so that rows which share nothing stay in theirs. Without `share` each row is a tree.
std::vector<RowTree> row_trees(const BatchRows& batch, int64_t most, bool share);

}  // namespace gigpo
