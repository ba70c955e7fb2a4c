// Trees of rows: every row occurs once, shared prefixes are computed once, and no micro-batch is too large.
#include "core/row_trees.h"

#include <algorithm>
#include <set>

#include "core/random.h"
#include "test/core/check.h"
#include "test/core/training_rows.h"

using namespace gigpo;
using test::TrainingRow;

namespace {

uint32_t below(uint32_t most, uint32_t stream, uint32_t i) { return philox({5, 6}, i, stream, 0, 0).word[0] % most; }

// Rows over few tokens, so that many have common prefixes of every length; some are equal, some extend others.
std::vector<TrainingRow> random_rows(uint32_t stream, int64_t count) {
  std::vector<TrainingRow> rows;
  uint32_t drawn = 0;
  const auto draw = [&](uint32_t most) { return below(most, stream, drawn++); };
  for (int64_t r = 0; r < count; r++) {
    TrainingRow row;
    if (!rows.empty() && draw(3) > 0) {  // shares a prefix with an earlier row
      const TrainingRow& other = rows[draw(uint32_t(rows.size()))];
      row.tokens.assign(other.tokens.begin(), other.tokens.begin() + 1 + draw(uint32_t(other.tokens.size())));
    }
    for (uint32_t more = 2 + draw(12); more > 0; more--) row.tokens.push_back(int32_t(draw(3)));
    const int64_t length = int64_t(row.tokens.size()), begin = 1 + draw(uint32_t(length - 1));
    row.spans = {{begin, length - begin}};
    rows.push_back(std::move(row));
  }
  return rows;
}

// Number of distinct prefixes of all rows: the tokens of the smallest tree that contains them.
int64_t beginnings(const BatchRows& batch, const std::vector<const BatchRows::Row*>& rows) {
  std::set<std::vector<int32_t>> found;
  for (const BatchRows::Row* row : rows) {
    for (int64_t end = 1; end <= RowTree::computed(batch, *row); end++) found.emplace(row->tokens, row->tokens + end);
  }
  return int64_t(found.size());
}

void check_trees(const BatchRows& batch, const std::vector<RowTree>& trees, int64_t most) {
  std::vector<const BatchRows::Row*> seen;
  const BatchRows::Row* first = nullptr;
  for (const RowTree& tree : trees) {
    std::vector<const BatchRows::Row*> rows;
    int64_t wanted = 0;
    for (size_t i = 0; i < tree.branches.size(); i++) {
      const auto& [row, shared] = tree.branches[i];
      if (i == 0) {
        CHECK(shared == 0);
      } else {
        const BatchRows::Row& before = *tree.branches[i - 1].row;
        CHECK(shared <= RowTree::computed(batch, before) && std::equal(row->tokens, row->tokens + shared, before.tokens));
      }
      rows.push_back(row), wanted += batch.sampled(*row);
    }
    CHECK(tree.wanted == wanted && tree.tokens == beginnings(batch, rows), "%d tokens, not %d", int(tree.tokens), int(beginnings(batch, rows)));
    CHECK(rows.size() == 1 || (tree.tokens <= most && tree.wanted <= most), "%d tokens of %d", int(tree.tokens), int(most));
    const BatchRows::Row* earliest = *std::min_element(rows.begin(), rows.end());
    CHECK(!first || first < earliest, "trees are in the order of their first rows");
    first = earliest;
    seen.insert(seen.end(), rows.begin(), rows.end());
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen.size() == batch.rows.size() && std::unique(seen.begin(), seen.end()) == seen.end(), "every row occurs once");
}

void test_every_row_is_in_one_tree_with_each_prefix_once() {
  for (uint32_t stream = 0; stream < 60; stream++) {
    const std::vector<TrainingRow> rows = random_rows(stream, 1 + below(30, 1000, stream));
    const test::FlatBatch flat(rows);
    const BatchRows batch(flat);
    for (const int64_t most : {1, 15, 40, 1 << 20}) {
      check_trees(batch, row_trees(batch, most, true), most);
      const std::vector<RowTree> apart = row_trees(batch, most, false);
      check_trees(batch, apart, most);
      CHECK(apart.size() == rows.size());
    }
  }
}

// Comparison with all ways to split the sorted rows.
void test_split_has_minimum_cost() {
  for (uint32_t stream = 100; stream < 140; stream++) {
    std::vector<TrainingRow> rows = random_rows(stream, 9);
    std::sort(rows.begin(), rows.end(), [](const TrainingRow& a, const TrainingRow& b) {
      return std::lexicographical_compare(a.tokens.begin(), a.tokens.end() - 1, b.tokens.begin(), b.tokens.end() - 1);
    });
    const test::FlatBatch flat(rows);
    const BatchRows batch(flat);
    const auto length = [&](size_t row) { return RowTree::computed(batch, batch.rows[row]); };
    // Each token after another row of a tree costs an eighth more.
    const auto cost_of = [&](size_t begin, size_t end, int64_t most) -> int64_t {
      std::vector<const BatchRows::Row*> some;
      int64_t wanted = 0;
      for (size_t row = begin; row < end; row++) some.push_back(&batch.rows[row]), wanted += batch.sampled(batch.rows[row]);
      const int64_t tokens = beginnings(batch, some);
      if (end - begin > 1 && (tokens > most || wanted > most)) return int64_t{1} << 40;
      return 9 * tokens - length(begin);
    };
    for (const int64_t most : {12, 25, 1 << 20}) {
      int64_t least = int64_t{1} << 50, found = 0;
      for (uint32_t cuts = 0; cuts < 1u << (rows.size() - 1); cuts++) {
        int64_t cost = 0;
        for (size_t begin = 0, end; begin < rows.size(); begin = end) {
          for (end = begin + 1; end < rows.size() && !(cuts >> (end - 1) & 1);) end++;
          cost += cost_of(begin, end, most);
        }
        least = std::min(least, cost);
      }
      for (const RowTree& tree : row_trees(batch, most, true)) {
        found += 9 * tree.tokens - RowTree::computed(batch, *tree.branches[0].row);
      }
      CHECK(found == least, "%d, not %d", int(found), int(least));
    }
  }
}

void test_rows_without_common_prefixes_keep_their_order() {
  std::vector<TrainingRow> rows;
  for (const int32_t first : {5, 3, 9, 1}) rows.push_back(test::step_row({first, 7, 7}, {7, 7}));
  rows.push_back(test::step_row({3, 7, 7}, {7, 8}));
  const test::FlatBatch flat(rows);
  const BatchRows batch(flat);
  const std::vector<RowTree> trees = row_trees(batch, 100, true);
  CHECK(trees.size() == 4 && trees[1].branches.size() == 2 && trees[1].tokens == 4);  // 8 is a last token, which is not computed
  for (size_t i = 0; i < trees.size(); i++) CHECK(trees[i].branches[0].row == &batch.rows[i]);
}

}  // namespace

int main() {
  test_every_row_is_in_one_tree_with_each_prefix_once();
  test_split_has_minimum_cost();
  test_rows_without_common_prefixes_keep_their_order();
  return test::report();
}
