// Pages of the KV cache: users, lookup and eviction order.
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

void test_pages_run_out() {
  PagePool pool(3);
  const int32_t a = pool.take(), b = pool.take(), c = pool.take();
  CHECK(a != b && b != c && a != c && a >= 0 && b >= 0 && c >= 0);
  CHECK(pool.take() == none && pool.available() == 0);
  pool.give_back(b);
  CHECK(pool.available() == 1 && pool.take() == b && pool.take() == none);
}

void test_shared_page_is_found_by_parent_and_tokens() {
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

void test_page_is_free_after_its_last_user() {
  PagePool pool(1);
  const int32_t page = pool.take();
  pool.share(page, none, tokens(1));
  CHECK(pool.find(none, tokens(1)) == page);
  pool.give_back(page);
  CHECK(pool.available() == 0 && pool.take() == none);
  pool.give_back(page);
  CHECK(pool.available() == 1);
  CHECK(pool.find(none, tokens(1)) == page && pool.available() == 0);  // it can still be found
}

void test_eviction_order() {
  PagePool pool(3);
  const int32_t a = pool.take(), b = pool.take(), c = pool.take();
  pool.share(a, none, tokens(1));
  pool.share(b, none, tokens(2));
  pool.give_back(b);
  pool.give_back(a);
  pool.give_back(c);  // was never shared
  CHECK(pool.take() == c);
  CHECK(pool.take() == b);
  CHECK(pool.find(none, tokens(2)) == none);
  CHECK(pool.find(none, tokens(1)) == a);
}

void test_reused_page_is_not_its_former_parent() {
  PagePool pool(2);
  const int32_t parent = pool.take(), child = pool.take();
  pool.share(parent, none, tokens(1));
  pool.share(child, parent, tokens(2));
  pool.give_back(parent);
  const int32_t again = pool.take();
  CHECK(again == parent);
  pool.share(again, none, tokens(9));
  CHECK(pool.find(again, tokens(2)) == none);  // the parent of the child was an earlier use of the same page
}

void test_older_of_two_equal_pages_is_kept() {
  PagePool pool(3);
  const int32_t older = pool.take(), newer = pool.take();
  pool.share(older, none, tokens(1));
  pool.share(newer, none, tokens(1));
  CHECK(pool.find(none, tokens(1)) == older);
  pool.give_back(newer);
  CHECK(pool.take() == newer);  // evicting the newer one leaves the older one findable
  CHECK(pool.find(none, tokens(1)) == older);
}

void test_nothing_is_found_after_a_weight_change() {
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
  test_pages_run_out();
  test_shared_page_is_found_by_parent_and_tokens();
  test_page_is_free_after_its_last_user();
  test_eviction_order();
  test_reused_page_is_not_its_former_parent();
  test_older_of_two_equal_pages_is_kept();
  test_nothing_is_found_after_a_weight_change();
  return test::report();
}
