// Which page of the key/value cache belongs to whom. Full pages are shared by every sequence that starts with the same
// tokens: a page is found by its parent page and its own tokens, so equal prompts of a group, and the common beginnings of
// an episode's steps, are computed once.
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
  // A page for one sequence's own use, or `none`. Forgets the shared page that was unused for longest.
  int32_t take();
  // The page that holds these tokens after `parent`, now also held by the caller; or `none`.
  int32_t find(int32_t parent, const PageTokens& tokens);
  // Lets others find `page`, which holds these tokens after `parent`. Keeps the older page if there is one.
  void share(int32_t page, int32_t parent, const PageTokens& tokens);
  void give_back(int32_t page);
  // The weights changed: nothing computed before may be found again.
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
    uint64_t serial = 0;  // never used twice, so a recycled page is not taken for its former self
    bool shared = false;
    Identity identity;
    std::list<int32_t>::iterator place;  // in `unused_`
  };
  uint64_t serial_of(int32_t page) const { return page == none ? 0 : pages_[page].serial; }
  void forget(Page& page);

  std::vector<Page> pages_;
  std::list<int32_t> unused_;  // first: unused for longest
  std::unordered_map<Identity, int32_t, Hash> shared_;
  uint64_t next_serial_ = 1;
};

}  // namespace gigpo
