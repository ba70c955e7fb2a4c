// Which tokens a reply may go on with, by a grammar over their bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/grammar/grammar.h"

namespace gigpo {

// The bytes that each token stands for. A token without bytes (a control token, or a row of the model without a token) is in no text.
class TokenBytes {
 public:
  // Token i is bytes[offsets[i] .. offsets[i + 1]); `ends` end a reply, where it may end. Throws Error BAD_ARGUMENT.
  TokenBytes(std::vector<uint8_t> bytes, std::vector<int64_t> offsets, std::vector<int32_t> ends);

  int64_t size() const { return int64_t(offsets_.size()) - 1; }
  std::span<const uint8_t> of(int32_t token) const;
  bool ends(int32_t token) const;

  // Tokens with bytes in the order of these, each with how many its bytes have in common with the one before: a trie, written depth
  // first.
  struct Ordered {
    int32_t token, shared;
  };
  const std::vector<Ordered>& ordered() const { return ordered_; }
  const std::vector<int32_t>& all_ends() const { return ends_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> ends_;
  std::vector<Ordered> ordered_;
};

// [(vocabulary + 31) / 32] bit t % 32 of word t / 32: whether token t may come next.
using TokenMask = std::vector<uint32_t>;

// A grammar's masks over one vocabulary; those of states that come again are kept. One thread at a time works, others wait.
class TokenMasks {
 public:
  // Bytes of masks that are kept.
  static constexpr size_t most_kept = size_t(64) << 20;
  // Of one mask, as Grammar::work counts it: some 100 ms, for which an engine's thread may stand still.
  static constexpr int64_t most_work = 16'000'000;

  TokenMasks(Grammar grammar, std::shared_ptr<const TokenBytes> tokens);

  int64_t vocabulary() const { return tokens_->size(); }
  Grammar::State start() const { return grammar_.start(); }
  // Throws Error BAD_ARGUMENT where a model of so many tokens has not all of these. It may have more: they stand for nothing.
  void check_model(int64_t vocabulary) const;
  // The state after a token; Grammar::none after one that ends the reply. Throws Error BAD_ARGUMENT where the token is not allowed,
  // and nothing is behind the end.
  Grammar::State next(Grammar::State state, int32_t token);
  // Throws Error BAD_ARGUMENT where no token is allowed, and where it would be more than most_work.
  std::shared_ptr<const TokenMask> mask(Grammar::State state);

 private:
  TokenMask make(Grammar::State state);

  std::mutex lock_;
  Grammar grammar_;
  std::shared_ptr<const TokenBytes> tokens_;
  std::unordered_map<Grammar::State, std::shared_ptr<const TokenMask>> kept_;
};

}  // namespace gigpo
