// Ownership of the pages of the KV cache, with prefix caching. Full pages are shared by all sequences with the same prefix: a page is
// identified by its parent page and its own tokens. So equal prompts of a group and common prefixes of the steps of an episode are
// computed once.
#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "core/device.h"

namespace gigpo {

class PagePool {
 public:
  static constexpr int32_t none = -1;
  using PageTokens = std::array<int32_t, PagedCache::page_size>;

  explicit PagePool(int32_t pages);

  int32_t available() const { return int32_t(unused_.size()); }
  // Takes a page for exclusive use; `none` if no page is free. Pages that cannot be found by others are taken first, then the least
  // recently used shared page, which then can no longer be found.
  int32_t take();
  // Finds the shared page with these tokens after `parent` and adds the caller to its users; `none` if there is no such page.
  int32_t find(int32_t parent, const PageTokens& tokens);
  // Makes `page`, which holds these tokens after `parent`, available to `find`. If an equal page is shared already, that one is kept.
  void share(int32_t page, int32_t parent, const PageTokens& tokens);
  void give_back(int32_t page);
  // Invalidates all shared pages, after a change of the weights. Sequences keep the pages that they hold.
  void forget_shared();

 private:
  struct Identity {
    uint64_t parent;  // serial of the parent page; 0 at the start of a sequence
    PageTokens tokens;
    bool operator==(const Identity&) const = default;
  };
  struct Hash {
    size_t operator()(const Identity& identity) const;
  };
  struct Page {
    int32_t users = 0;
    uint64_t serial = 0;  // unique per use, so a reused page is not mistaken for its earlier contents
    bool shared = false;
    Identity identity;
    std::list<int32_t>::iterator place;  // in `unused_`
  };
  uint64_t serial_of(int32_t page) const { return page == none ? 0 : pages_[page].serial; }
  void forget(Page& page);

  std::vector<Page> pages_;
  std::list<int32_t> unused_;  // order in which pages are taken: pages that are not shared, then least recently used first
  std::unordered_map<Identity, int32_t, Hash> shared_;
  uint64_t next_serial_ = 1;
};

}  // namespace gigpo
