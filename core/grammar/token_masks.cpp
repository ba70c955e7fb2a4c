#include "core/grammar/token_masks.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace gigpo {

TokenBytes::TokenBytes(std::vector<uint8_t> bytes, std::vector<int64_t> offsets, std::vector<int32_t> ends)
    : bytes_(std::move(bytes)), offsets_(std::move(offsets)), ends_(std::move(ends)) {
  const bool whole = offsets_.size() > 1 && offsets_.front() == 0 && offsets_.back() == int64_t(bytes_.size());
  if (!whole || !std::is_sorted(offsets_.begin(), offsets_.end())) {
    throw Error("BAD_ARGUMENT", "The offsets of tokens' bytes must begin with 0, not decrease, and end with the number of bytes.");
  }
  for (const int32_t token : ends_) {
    if (token < 0 || token >= size()) throw Error("BAD_ARGUMENT", "An end token of completions must be in the vocabulary.");
  }
  for (int32_t token = 0; token < size(); token++) {
    if (!of(token).empty() && !this->ends(token)) ordered_.push_back({token, 0});
  }
  const auto before = [&](const Ordered& a, const Ordered& b) {
    const auto x = of(a.token), y = of(b.token);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  };
  std::stable_sort(ordered_.begin(), ordered_.end(), before);
  for (size_t i = 1; i < ordered_.size(); i++) {
    const auto x = of(ordered_[i - 1].token), y = of(ordered_[i].token);
    ordered_[i].shared = int32_t(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
  }
}

std::span<const uint8_t> TokenBytes::of(int32_t token) const {
  return {bytes_.data() + offsets_[size_t(token)], size_t(offsets_[size_t(token) + 1] - offsets_[size_t(token)])};
}

bool TokenBytes::ends(int32_t token) const { return std::find(ends_.begin(), ends_.end(), token) != ends_.end(); }

TokenMasks::TokenMasks(Grammar grammar, std::shared_ptr<const TokenBytes> tokens)
    : grammar_(std::move(grammar)), tokens_(std::move(tokens)) {}

void TokenMasks::check_model(int64_t model) const {
  if (vocabulary() <= model) return;
  throw Error("BAD_ARGUMENT", "The constraint is over " + std::to_string(vocabulary()) + " tokens, but the model has " +
                                  std::to_string(model) + ": use the tokenizer of the model.");
}

Grammar::State TokenMasks::next(Grammar::State state, int32_t token) {
  const std::lock_guard guard(lock_);
  const auto refuse = [&] { throw Error("BAD_ARGUMENT", "token " + std::to_string(token) + " is not allowed by the grammar at its position."); };
  if (state == Grammar::none || token < 0 || token >= vocabulary()) refuse();
  if (tokens_->ends(token) && grammar_.ends(state)) return Grammar::none;
  const auto bytes = tokens_->of(token);
  for (const uint8_t byte : bytes) {
    if (state != Grammar::none) state = grammar_.next(state, byte);
  }
  if (bytes.empty() || tokens_->ends(token) || state == Grammar::none) refuse();
  return state;
}

std::shared_ptr<const TokenMask> TokenMasks::mask(Grammar::State state) {
  int64_t budget = std::numeric_limits<int64_t>::max();
  return mask(state, budget);
}

std::shared_ptr<const TokenMask> TokenMasks::mask(Grammar::State state, int64_t& budget) {
  const std::lock_guard guard(lock_);
  if (const auto kept = kept_.find(state); kept != kept_.end()) return kept->second;
  const size_t bytes = size_t(vocabulary() + 31) / 32 * sizeof(uint32_t);
  if (auto known = unfinished_.find(state); known == unfinished_.end()) {
    if ((unfinished_.size() + 1) * bytes > most_kept) unfinished_.clear();
    unfinished_.emplace(state, begin(state));
  }
  const auto made = unfinished_.find(state);
  try {
    if (!finish(made->second, budget)) return nullptr;
  } catch (...) {
    unfinished_.erase(made);
    throw;
  }
  auto mask = std::make_shared<const TokenMask>(std::move(made->second.mask));
  unfinished_.erase(made);
  if ((kept_.size() + 1) * bytes > most_kept) kept_.clear();
  return kept_[state] = std::move(mask);
}

TokenMasks::Unfinished TokenMasks::begin(Grammar::State state) const {
  if (state == Grammar::none) throw Error("BAD_ARGUMENT", "No token can follow the end of the text.");
  Unfinished made{.mask = TokenMask(size_t(vocabulary() + 31) / 32, 0), .path = {state}};
  if (grammar_.ends(state)) {
    for (const int32_t token : tokens_->all_ends()) made.allow(token);
  }
  return made;
}

// Cost of a token, and of following a byte of it from one known state to another, in units of Grammar::work.
constexpr int64_t token_work = 8, byte_work = 16;

// Continues a mask. Returns whether it is complete.
bool TokenMasks::finish(Unfinished& made, int64_t& budget) {
  const std::vector<TokenBytes::Ordered>& ordered = tokens_->ordered();
  std::vector<Grammar::State>& path = made.path;
  for (; made.next < ordered.size(); made.next++) {
    if (budget <= 0) return false;
    budget -= token_work;
    const auto& [token, shared] = ordered[made.next];
    const int64_t before = grammar_.work();
    const auto bytes = tokens_->of(token);
    // Following tokens reuse the states of their common prefix.
    if (size_t(shared) + 1 < path.size()) path.resize(size_t(shared) + 1);
    if (path.back() == Grammar::none) continue;  // the common prefix with the previous token is rejected already
    budget -= byte_work * int64_t(bytes.size() + 1 - path.size());
    while (path.back() != Grammar::none && path.size() <= bytes.size()) path.push_back(grammar_.next(path.back(), bytes[path.size() - 1]));
    if (path.back() != Grammar::none) made.allow(token);
    const int64_t work = grammar_.work() - before;
    budget -= work, made.spent += work;
    if (made.spent > most_work) throw Error("BAD_ARGUMENT", "The grammar takes too much work: it can be read in too many ways.");
  }
  if (!made.any) throw Error("BAD_ARGUMENT", "No token of this vocabulary continues the text as the grammar requires.");
  return true;
}

}  // namespace gigpo
