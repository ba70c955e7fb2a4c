// Who takes part in the next step, and in which pages of the cache.
#include <algorithm>

#include "core/generator.h"

namespace gigpo {

constexpr int64_t page_size = PagedCache::page_size;

// The next token of every running sequence first; what room is left goes to prompts, in order of arrival. When the cache
// is full the youngest sequence gives up its pages and waits; its tokens are kept and computed again later. So that this is rare, none
// is admitted that would leave the others without a page to go on (as vLLM's watermark does), unless it is alone.
void Generator::schedule() {
  int64_t room = options_.step_tokens;
  for (size_t i = 0; i < running_.size() && room > 0; i++) {
    Sequence& sequence = *running_[i];
    const int64_t wanted = sequence.wanted(room);
    while (!take_pages(sequence, sequence.computed + wanted) && running_.size() > i + 1) preempt_youngest();
    if (!take_pages(sequence, sequence.computed + wanted)) {  // it is the youngest itself
      preempt_youngest();
      break;
    }
    sequence.scheduled = wanted;
    publish_full_pages(sequence);
    room -= wanted;
  }
  while (!waiting_.empty() && room > 0) {
    Sequence& sequence = *waiting_.front();
    reuse_shared_pages(sequence);
    const int64_t wanted = sequence.wanted(room);
    if (!take_pages(sequence, sequence.computed + wanted) || !leaves_reserve()) {
      release_pages(sequence);
      break;
    }
    counts_->reused += sequence.computed;
    sequence.scheduled = wanted;
    publish_full_pages(sequence);
    room -= wanted;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

static PagePool::PageTokens page_tokens(const std::vector<int32_t>& tokens, int64_t page) {
  PagePool::PageTokens result;
  std::copy_n(tokens.begin() + page * page_size, page_size, result.begin());
  return result;
}

// At least the last token is left to compute: its logits are wanted.
void Generator::reuse_shared_pages(Sequence& sequence) {
  while (sequence.computed + page_size < int64_t(sequence.tokens.size())) {
    const int32_t parent = sequence.pages.empty() ? PagePool::none : sequence.pages.back();
    const int32_t page = pages_->find(parent, page_tokens(sequence.tokens, int64_t(sequence.pages.size())));
    if (page == PagePool::none) return;
    sequence.pages.push_back(page);
    sequence.published++;
    sequence.computed += page_size;
  }
}

bool Generator::take_pages(Sequence& sequence, int64_t tokens) {
  while (int64_t(sequence.pages.size()) * page_size < tokens) {
    const int32_t page = pages_->take();
    if (page == PagePool::none) return false;
    sequence.pages.push_back(page);
  }
  return true;
}

// Whether one that is about to be admitted leaves a page for each that runs already, which is 16 steps for them all.
bool Generator::leaves_reserve() const { return pages_->available() >= int64_t(running_.size()); }

// Whether every running sequence can go on without taking another's pages. Where it cannot, the step under way is read first: some may
// have ended, and nobody is preempted whose token is still unread.
bool Generator::pages_suffice() const {
  int64_t missing = 0;
  for (const auto& sequence : running_) {
    const int64_t tokens = sequence->computed + sequence->wanted(options_.step_tokens);
    missing += std::max<int64_t>((tokens + page_size - 1) / page_size - int64_t(sequence->pages.size()), 0);
  }
  return missing <= pages_->available();
}

// Pages that are full can be found from now on, if it is known what they are full of. Those that the step at hand fills as well: within
// a step, keys are written before any are read.
void Generator::publish_full_pages(Sequence& sequence) {
  const int64_t full = std::min(sequence.computed + sequence.scheduled, int64_t(sequence.tokens.size())) / page_size;
  for (int64_t& page = sequence.published; page < full; page++) {
    const int32_t parent = page == 0 ? PagePool::none : sequence.pages[page - 1];
    pages_->share(sequence.pages[page], parent, page_tokens(sequence.tokens, page));
  }
}

void Generator::preempt_youngest() {
  release_pages(*running_.back());
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
  counts_->preempted++;
}

void Generator::release_pages(Sequence& sequence) {
  // The end first: what is forgotten first is then a leaf, without which the rest of its chain can still be found.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page) pages_->give_back(*page);
  sequence.pages.clear();
  sequence.computed = sequence.scheduled = sequence.published = 0;
}

// Another has used the cache's memory: whoever was running waits, and is computed again.
void Generator::lose_cache() {
  while (!running_.empty()) preempt_youngest();
  pages_->forget_shared();
}

}  // namespace gigpo
