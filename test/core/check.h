// Minimal test harness: CHECK counts and prints failures, report() prints the totals.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gigpo::test {

inline int passed = 0, failed = 0;

template <class... Details>
bool check(bool ok, const char* what, const char* file, int line, const char* format = "", Details... details) {
  ++(ok ? passed : failed);
  if (ok || failed > 20) return ok;  // the first failures are enough
  std::printf("%s:%d: failed: %s ", file, line, what);
  if constexpr (sizeof...(details) > 0)
    std::printf(format, details...);
  else
    std::printf("%s", format);
  std::printf("\n");
  return ok;
}

// Exit status of main.
inline int report() {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

// Whether the next part of the program runs in this process. With GIGPO_TEST_SHARD=K/N (K from 1), every N-th part
// does, so that N processes share a long program. Without it, all parts do.
inline bool next_part_is_mine() {
  static const char* const variable = std::getenv("GIGPO_TEST_SHARD");
  static int shard = 1, shards = 1, parts = 0;
  if (parts == 0 && variable && (std::sscanf(variable, "%d/%d", &shard, &shards) != 2 || shard < 1 || shard > shards)) {
    std::printf("GIGPO_TEST_SHARD is \"%s\". Set it to K/N with 1 <= K <= N.\n", variable);
    std::exit(1);
  }
  return parts++ % shards == shard - 1;
}
template <class Body>
void part(Body body) {
  if (next_part_is_mine()) body();
}

struct Test {
  const char* name;
  void (*run)();
};

// Prints the name of each test, runs it, then calls `after`. Returns the exit status of main.
template <class Tests, class After>
int run_all(const Tests& tests, After after) {
  for (const Test& test : tests) {
    std::printf("%s\n", test.name);
    test.run();
    after();
  }
  return report();
}
template <class Tests>
int run_all(const Tests& tests) {
  return run_all(tests, [] {});
}

}  // namespace gigpo::test

// CHECK(condition[, printf format and values for the failure message])
#define CHECK(condition, ...) \
  gigpo::test::check(bool(condition), #condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)

// CHECK_THROWS(expression, "CODE"): requires a gigpo::Error with that code.
#define CHECK_THROWS(expression, expected)                                        \
  try {                                                                           \
    expression;                                                                   \
    CHECK(false, "%s did not throw", #expression);                                \
  } catch (const gigpo::Error& error) {                                           \
    CHECK(std::string_view(error.code) == expected, "%s: %s", #expression, error.code); \
  }
