#include "core/cpu/attention_parts.h"

namespace gigpo::cpu {

std::vector<Tokens> trees_of(const PackedRows& rows, int64_t tokens) {
  std::vector<Tokens> trees;
  for (int64_t token = 0; token < tokens; token = rows.ends[token]) trees.push_back({token, rows.ends[token]});
  return trees;
}

std::vector<BackwardPart> backward_parts(const std::vector<Tokens>& trees, int64_t heads, int64_t kv_heads, int threads) {
  double largest = 0, total = 0;
  for (const Tokens& tree : trees) {
    const double pairs = double(tree.count()) * double(tree.count());
    largest = std::max(largest, pairs), total += double(kv_heads) * pairs;
  }
  const bool apart = largest * threads > 2 * total;
  const int64_t group = heads / kv_heads;
  std::vector<BackwardPart> parts;
  for (const Tokens& tree : trees) {
    each_piece(tree, apart ? key_piece : tree.count(), [&](Tokens keys) {
      for (int64_t h = 0; h < heads; h += group) parts.push_back({keys, {keys.start, tree.end}, h, group, true, !apart});
    });
    if (!apart) continue;
    each_piece(tree, query_block, [&](Tokens queries) {
      for (int64_t h = 0; h < heads; h++) parts.push_back({tree, queries, h, 1, false, true});
    });
  }
  return parts;
}

}  // namespace gigpo::cpu
