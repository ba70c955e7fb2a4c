// Token masks of constrained decoding: tokens that may come next in a completion, by a grammar over their bytes.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/grammar/grammar.h"

namespace gigpo {

// Bytes of each token of a vocabulary. A token without bytes (a control token, or an unused row of the model's vocabulary) occurs in no text.
class TokenBytes {
 public:
  // Token i has bytes[offsets[i] .. offsets[i + 1]). The tokens `ends` end a completion where the grammar allows an end. Throws Error
  // BAD_ARGUMENT if the arguments are inconsistent.
  TokenBytes(std::vector<uint8_t> bytes, std::vector<int64_t> offsets, std::vector<int32_t> ends);

  int64_t size() const { return int64_t(offsets_.size()) - 1; }
  std::span<const uint8_t> of(int32_t token) const;
  bool ends(int32_t token) const;

  // Token of a trie in depth-first order: tokens with bytes, sorted by their bytes. `shared` is the length of the common prefix with the
  // previous token.
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

// Bit mask of the tokens that may come next, [(vocabulary + 31) / 32]: token t is bit t % 32 of word t / 32.
using TokenMask = std::vector<uint32_t>;

// Token masks of a grammar over one vocabulary, with a cache by state. Thread-safe: a lock serializes the calls.
class TokenMasks {
 public:
  // Maximum bytes of cached masks.
  static constexpr size_t most_kept = size_t(64) << 20;
  // Maximum cost of one mask in units of Grammar::work: about 100 ms, during which the engine's thread is blocked.
  static constexpr int64_t most_work = 16'000'000;

  TokenMasks(Grammar grammar, std::shared_ptr<const TokenBytes> tokens);

  int64_t vocabulary() const { return tokens_->size(); }
  Grammar::State start() const { return grammar_.start(); }
  // Throws Error BAD_ARGUMENT if the model's vocabulary is smaller than that of the tokens. A larger one is allowed; its additional tokens
  // have no text.
  void check_model(int64_t vocabulary) const;
  // State after a token; Grammar::none after a token that ends the completion. Throws Error BAD_ARGUMENT if the token is not allowed; no token
  // is allowed after the end.
  Grammar::State next(Grammar::State state, int32_t token);
  // Mask of the tokens allowed in a state. Throws Error BAD_ARGUMENT if no token is allowed or if the mask would cost more than most_work.
  std::shared_ptr<const TokenMask> mask(Grammar::State state);
  // The same with a limit of work in units of Grammar::work, about 3 ns, from which the work is subtracted; null if it does not suffice.
  // The next call continues.
  std::shared_ptr<const TokenMask> mask(Grammar::State state, int64_t& budget);

 private:
  // Mask of which the tokens of the trie before `next` are known.
  struct Unfinished {
    TokenMask mask;
    std::vector<Grammar::State> path;  // path[d]: state after d bytes of the current token
    size_t next = 0;
    int64_t spent = 0;
    bool any = false;

    void allow(int32_t token) { mask[size_t(token) / 32] |= 1u << (token % 32), any = true; }
  };
  Unfinished begin(Grammar::State state) const;
  bool finish(Unfinished& made, int64_t& budget);

  std::mutex lock_;
  Grammar grammar_;
  std::shared_ptr<const TokenBytes> tokens_;
  std::unordered_map<Grammar::State, std::shared_ptr<const TokenMask>> kept_;
  std::unordered_map<Grammar::State, Unfinished> unfinished_;
};

}  // namespace gigpo
