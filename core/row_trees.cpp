#include "core/row_trees.h"

#include <algorithm>
#include <deque>
#include <string_view>

namespace gigpo {

namespace {

// Relative cost of a token in a tree and alone. In a tree, tokens are also scored with keys that they do not see, but that are in one group of
// 64 with visible keys, or with the keys of an adjacent query: about 100 keys, whose 4 · 100 · H operations are an eighth of a token's
// 22 · H² (H = 128, 1 M weights). This is an estimate; the share decreases with the size of the model.
constexpr int64_t joined_cost = 9, alone_cost = 8;

// Sequences sorted by their tokens. Each then has its longest common prefix with its predecessor, and any contiguous range is a tree in
// depth-first order.
class Sorted {
 public:
  explicit Sorted(const BatchRows& batch) {
    for (const BatchRows::Row& row : batch.rows) {
      paths_.push_back({&row, RowTree::computed(batch, row), batch.sampled(row), 0});
    }
    std::stable_sort(paths_.begin(), paths_.end(), [](const Path& a, const Path& b) { return a.bytes() < b.bytes(); });
    for (size_t i = 1; i < paths_.size(); i++) {
      const Path &path = paths_[i], &before = paths_[i - 1];
      const int32_t* end = path.row->tokens + std::min(path.length, before.length);
      paths_[i].shared = std::mismatch(path.row->tokens, end, before.row->tokens).first - path.row->tokens;
    }
  }

  // Splits the sorted sequences into trees of at most `most` tokens with minimum total cost. The minimum cost of the first `end` sequences is
  //   cost(end) = min over begin of cost(begin) + alone · length(begin) + joined · Σ (length - shared) of the sequences after it,
  // over all `begin` whose tree is not too large. A window keeps these in the order of their costs.
  std::vector<RowTree> trees(int64_t most) const {
    const size_t count = paths_.size();
    std::vector<Sums> sums(count + 1);  // prefix sums over the sequences
    std::vector<size_t> begins(count + 1);
    std::deque<Begin> window;
    int64_t cost = 0;
    for (size_t row = 0; row < count; row++) {
      const Path& path = paths_[row];
      sums[row + 1] = {sums[row].added + path.length - path.shared, sums[row].wanted + path.wanted};
      const Begin fresh{row, cost + alone_cost * path.length - joined_cost * sums[row + 1].added};
      while (!window.empty() && window.back().cost >= fresh.cost) window.pop_back();
      window.push_back(fresh);
      const auto too_large = [&](size_t begin) {
        const int64_t tokens = paths_[begin].length + sums[row + 1].added - sums[begin + 1].added;
        return begin < row && (tokens > most || sums[row + 1].wanted - sums[begin].wanted > most);
      };
      while (too_large(window.front().row)) window.pop_front();
      begins[row + 1] = window.front().row;
      cost = window.front().cost + joined_cost * sums[row + 1].added;
    }
    std::vector<RowTree> result;
    for (size_t end = count; end > 0; end = begins[end]) result.push_back(tree(begins[end], end));
    return result;
  }

 private:
  struct Path {
    const BatchRows::Row* row;
    int64_t length, wanted;
    int64_t shared;  // common prefix with the previous sequence
    std::string_view bytes() const { return {reinterpret_cast<const char*>(row->tokens), size_t(length) * sizeof(int32_t)}; }
  };
  struct Sums {
    int64_t added = 0, wanted = 0;
  };
  struct Begin {
    size_t row;
    int64_t cost;  // without the terms that are equal for all begins
  };

  RowTree tree(size_t begin, size_t end) const {
    RowTree tree;
    for (size_t i = begin; i < end; i++) {
      const Path& path = paths_[i];
      const int64_t shared = i == begin ? 0 : path.shared;
      tree.branches.push_back({path.row, shared});
      tree.tokens += path.length - shared;
      tree.wanted += path.wanted;
    }
    return tree;
  }

  std::vector<Path> paths_;
};

}  // namespace

std::vector<RowTree> row_trees(const BatchRows& batch, int64_t most, bool share) {
  std::vector<RowTree> trees;
  if (!share) {
    for (const BatchRows::Row& row : batch.rows) trees.push_back({{{&row, 0}}, RowTree::computed(batch, row), batch.sampled(row)});
    return trees;
  }
  trees = Sorted(batch).trees(most);
  const auto first = [](const RowTree& tree) {
    const auto earlier = [](const Branch& a, const Branch& b) { return a.row < b.row; };
    return std::min_element(tree.branches.begin(), tree.branches.end(), earlier)->row;
  };
  std::sort(trees.begin(), trees.end(), [&](const RowTree& a, const RowTree& b) { return first(a) < first(b); });
  return trees;
}

}  // namespace gigpo
