// A check harness in a page: CHECK counts, a failed one prints itself, report() ends the program's output.
#pragma once
#include <cstdio>
#include <string_view>

namespace gigpo::test {

inline int passed = 0, failed = 0;

template <class... Details>
bool check(bool ok, const char* what, const char* file, int line, const char* format = "", Details... details) {
  ++(ok ? passed : failed);
  if (ok || failed > 20) return ok;  // the first failures say enough
  std::printf("%s:%d: failed: %s ", file, line, what);
  if constexpr (sizeof...(details) > 0)
    std::printf(format, details...);
  else
    std::printf("%s", format);
  std::printf("\n");
  return ok;
}

// The exit status of main.
inline int report() {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace gigpo::test

// CHECK(condition[, printf format and values that say more when it fails])
#define CHECK(condition, ...) \
  gigpo::test::check(bool(condition), #condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)

// CHECK_THROWS(expression, "CODE"): it throws a gigpo::Error of that code.
#define CHECK_THROWS(expression, expected)                                        \
  try {                                                                           \
    expression;                                                                   \
    CHECK(false, "%s did not throw", #expression);                                \
  } catch (const gigpo::Error& error) {                                           \
    CHECK(std::string_view(error.code) == expected, "%s: %s", #expression, error.code); \
  }
