// Distribution of rows over the threads, in ranges small enough for load balancing and large enough to amortize the overhead.
#pragma once
#include <algorithm>

#include "core/cpu/thread_pool.h"

namespace gigpo::cpu {

inline int64_t rows_in_range(const ThreadPool& pool, int64_t rows) {
  return std::clamp<int64_t>((rows + 4 * pool.size() - 1) / (4 * pool.size()), 8, 64);
}

// Calls body(first, count) for ranges that cover `rows`.
template <class Body>
void each_row_range(ThreadPool& pool, int64_t rows, Body body) {
  const int64_t size = rows_in_range(pool, rows);
  pool.parallel_for((rows + size - 1) / size, [&](int64_t part) { body(part * size, std::min(size, rows - part * size)); });
}

}  // namespace gigpo::cpu
