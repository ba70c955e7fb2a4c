#include "core/packed_tokens.h"

#include <algorithm>
#include <numeric>

namespace gigpo {

void PackedTokens::add(const int32_t* from, int64_t length, int32_t position, int32_t branch) {
  tokens.insert(tokens.end(), from, from + length);
  for (int64_t i = 0; i < length; i++) positions.push_back(position++);
  branches.insert(branches.end(), length, branch);
  offsets.back() = int32_t(tokens.size());
}

void PackedTokens::add_row(const int32_t* prompt, int64_t length) {
  prefixes.push_back(int32_t(length));
  offsets.push_back(offsets.back());
  add(prompt, length, 0, 0);
}

void PackedTokens::add_branch(const int32_t* reply, int64_t length) {
  add(reply, length, prefixes.back(), int32_t(tokens.size()) - offsets[offsets.size() - 2]);
}

PackedRows PackedTokens::upload_rows(Arena& arena) const {
  std::vector<int32_t> starts(tokens.size()), ends(tokens.size());
  for (size_t row = 0; row < prefixes.size(); row++) {
    const int32_t start = offsets[row], end = offsets[row + 1];
    for (int32_t token = end - 1, reply_end = end; token >= start; token--) {
      starts[token] = start;
      if (token + 1 < end && branches[token + 1] != branches[token]) reply_end = token + 1;
      ends[token] = branches[token] == 0 ? end : reply_end;
    }
  }
  return {offsets.data(), prefixes.data(), branches.data(), int64_t(prefixes.size()), arena.upload(starts), arena.upload(ends)};
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

void PagedTokens::add_filling() {
  wanted.push_back(int32_t(tokens.size()));
  tokens.push_back(0);
  positions.push_back(0);
  sequences.push_back(-1);
  page_tables.resize(page_tables.size() + table_stride, 0);
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
