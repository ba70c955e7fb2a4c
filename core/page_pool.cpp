#include "core/page_pool.h"

namespace gigpo {

size_t PagePool::Hash::operator()(const Identity& identity) const {
  uint64_t hash = identity.parent * 0x9E3779B97F4A7C15u;
  for (const int32_t token : identity.tokens) {
    hash = (hash ^ uint32_t(token)) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash;
}

PagePool::PagePool(int32_t pages) : pages_(pages) {
  for (int32_t page = 0; page < pages; page++) pages_[page].place = unused_.insert(unused_.end(), page);
}

int32_t PagePool::take() {
  if (unused_.empty()) return none;
  const int32_t index = unused_.front();
  unused_.pop_front();
  Page& page = pages_[index];
  forget(page);
  page.users = 1;
  page.serial = next_serial_++;
  return index;
}

int32_t PagePool::find(int32_t parent, const PageTokens& tokens) {
  const auto found = shared_.find({serial_of(parent), tokens});
  if (found == shared_.end()) return none;
  Page& page = pages_[found->second];
  if (page.users++ == 0) unused_.erase(page.place);
  return found->second;
}

void PagePool::share(int32_t index, int32_t parent, const PageTokens& tokens) {
  Page& page = pages_[index];
  page.identity = {serial_of(parent), tokens};
  page.shared = shared_.try_emplace(page.identity, index).second;
}

void PagePool::give_back(int32_t index) {
  Page& page = pages_[index];
  if (--page.users == 0) page.place = unused_.insert(page.shared ? unused_.end() : unused_.begin(), index);
}

void PagePool::forget_shared() {
  for (Page& page : pages_) {
    // To the front, so that these pages are reused before memory that was never touched.
    if (page.shared && page.users == 0) unused_.splice(unused_.begin(), unused_, page.place);
    forget(page);
  }
}

void PagePool::forget(Page& page) {
  if (page.shared) shared_.erase(page.identity);
  page.shared = false;
}

}  // namespace gigpo
