#include "core/packed_tokens.h"

#include <algorithm>
#include <numeric>

namespace gigpo {

void PackedTokens::add(const int32_t* from, int64_t count, int64_t depth) {
  tokens.insert(tokens.end(), from, from + count);
  for (int64_t i = 0; i < count; i++) positions.push_back(int32_t(depth + i));
}

PackedRows PackedTokens::upload_rows(Arena& arena) const {
  std::vector<int32_t> starts(tokens.size()), ends(tokens.size());
  std::vector<int32_t> path;  // from the first token of the tree to the current token
  const auto leave = [&](size_t depth, size_t token) {
    for (; path.size() > depth; path.pop_back()) ends[path.back()] = int32_t(token);
  };
  for (size_t token = 0; token < tokens.size(); token++) {
    leave(size_t(positions[token]), token);
    path.push_back(int32_t(token));
    starts[token] = path.front();
  }
  leave(0, tokens.size());
  return {arena.upload(starts), arena.upload(ends)};
}

RowScatter upload_scatter(const std::vector<int32_t>& indices, Arena& arena) {
  std::vector<int32_t> sources(indices.size()), targets, offsets;
  std::iota(sources.begin(), sources.end(), 0);
  std::stable_sort(sources.begin(), sources.end(), [&](int32_t a, int32_t b) { return indices[a] < indices[b]; });
  for (size_t i = 0; i < sources.size(); i++) {
    if (i > 0 && indices[sources[i]] == targets.back()) continue;
    targets.push_back(indices[sources[i]]);
    offsets.push_back(int32_t(i));
  }
  offsets.push_back(int32_t(sources.size()));
  return {arena.upload(targets), arena.upload(offsets), arena.upload(sources), int64_t(targets.size())};
}

void take_uploads(int64_t tokens, int64_t wanted, int64_t embeddings, Arena& arena) {
  const auto scatter = [&](int64_t sources, int64_t rows) {
    const int64_t targets = std::min(sources, rows);
    for (const int64_t count : {targets, targets + 1, sources}) arena.array<int32_t>(count);
  };
  for (const int64_t count : {tokens, tokens, tokens, tokens, wanted}) arena.array<int32_t>(count);
  scatter(wanted, tokens);
  if (embeddings > 0) scatter(tokens, embeddings);
}

void PagedTokens::fill(int64_t count, int64_t tables, int64_t wanted_count) {
  tokens.resize(count, 0);
  positions.resize(count, 0);
  sequences.resize(count, -1);
  page_tables.resize(tables * table_stride, 0);
  wanted.resize(wanted_count, int32_t(count) - 1);
}

void PagedTokens::add_to(Arena::Bundle& bundle, Uploaded& uploaded) const {
  bundle.add(positions, &uploaded.batch.positions);
  bundle.add(sequences, &uploaded.batch.sequences);
  bundle.add(page_tables, &uploaded.batch.page_tables);
  bundle.add(tokens, &uploaded.tokens);
  bundle.add(wanted, &uploaded.wanted);
  uploaded.batch.table_stride = table_stride;
  uploaded.count = int64_t(tokens.size());
  uploaded.wanted_count = int64_t(wanted.size());
}

}  // namespace gigpo
