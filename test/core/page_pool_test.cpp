// Pages of the key/value cache: who holds which, who may find which, and which is forgotten first.
#include "core/page_pool.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

constexpr int32_t none = PagePool::none;

PagePool::PageTokens tokens(int32_t first) {
  PagePool::PageTokens result;
  for (size_t i = 0; i < result.size(); i++) result[i] = first + int32_t(i);
  return result;
}

void pages_are_given_until_there_are_none() {
  PagePool pool(3);
  const int32_t a = pool.take(), b = pool.take(), c = pool.take();
  CHECK(a != b && b != c && a != c && a >= 0 && b >= 0 && c >= 0);
  CHECK(pool.take() == none && pool.available() == 0);
  pool.give_back(b);
  CHECK(pool.available() == 1 && pool.take() == b && pool.take() == none);
}

void a_shared_page_is_found_by_its_parent_and_its_tokens() {
  PagePool pool(4);
  const int32_t first = pool.take(), second = pool.take();
  CHECK(pool.find(none, tokens(1)) == none);
  pool.share(first, none, tokens(1));
  pool.share(second, first, tokens(50));
  CHECK(pool.find(none, tokens(1)) == first);
  CHECK(pool.find(first, tokens(50)) == second);
  CHECK(pool.find(none, tokens(50)) == none && pool.find(second, tokens(50)) == none);
  CHECK(pool.find(none, tokens(2)) == none);
}

void a_page_is_free_when_its_last_user_has_given_it_back() {
  PagePool pool(1);
  const int32_t page = pool.take();
  pool.share(page, none, tokens(1));
  CHECK(pool.find(none, tokens(1)) == page);
  pool.give_back(page);
  CHECK(pool.available() == 0 && pool.take() == none);
  pool.give_back(page);
  CHECK(pool.available() == 1);
  CHECK(pool.find(none, tokens(1)) == page && pool.available() == 0);  // and can still be found
}

void the_page_unused_for_longest_is_forgotten_first_and_private_ones_before_shared() {
  PagePool pool(3);
  const int32_t a = pool.take(), b = pool.take(), c = pool.take();
  pool.share(a, none, tokens(1));
  pool.share(b, none, tokens(2));
  pool.give_back(b);
  pool.give_back(a);
  pool.give_back(c);  // was shared with nobody
  CHECK(pool.take() == c);
  CHECK(pool.take() == b);
  CHECK(pool.find(none, tokens(2)) == none);
  CHECK(pool.find(none, tokens(1)) == a);
}

void a_page_that_was_used_anew_is_not_taken_for_its_former_self() {
  PagePool pool(2);
  const int32_t parent = pool.take(), child = pool.take();
  pool.share(parent, none, tokens(1));
  pool.share(child, parent, tokens(2));
  pool.give_back(parent);
  const int32_t again = pool.take();
  CHECK(again == parent);
  pool.share(again, none, tokens(9));
  CHECK(pool.find(again, tokens(2)) == none);  // the child's parent was another page of the same number
}

void the_older_of_two_equal_pages_is_kept() {
  PagePool pool(3);
  const int32_t older = pool.take(), newer = pool.take();
  pool.share(older, none, tokens(1));
  pool.share(newer, none, tokens(1));
  CHECK(pool.find(none, tokens(1)) == older);
  pool.give_back(newer);
  CHECK(pool.take() == newer);  // forgetting the newer one leaves the older to be found
  CHECK(pool.find(none, tokens(1)) == older);
}

void nothing_is_found_after_the_weights_changed() {
  PagePool pool(2);
  const int32_t held = pool.take(), given = pool.take();
  pool.share(held, none, tokens(1));
  pool.share(given, none, tokens(2));
  pool.give_back(given);
  pool.forget_shared();
  CHECK(pool.find(none, tokens(1)) == none && pool.find(none, tokens(2)) == none);
  CHECK(pool.available() == 1);
  pool.give_back(held);
  CHECK(pool.available() == 2);
}

}  // namespace

int main() {
  pages_are_given_until_there_are_none();
  a_shared_page_is_found_by_its_parent_and_its_tokens();
  a_page_is_free_when_its_last_user_has_given_it_back();
  the_page_unused_for_longest_is_forgotten_first_and_private_ones_before_shared();
  a_page_that_was_used_anew_is_not_taken_for_its_former_self();
  the_older_of_two_equal_pages_is_kept();
  nothing_is_found_after_the_weights_changed();
  return test::report();
}
