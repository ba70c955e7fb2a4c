// GB/s at which all threads together read memory, and copy it (what is read and what is written counted), from buffers that no cache
// holds: the floor of everything that goes through a model's weights once. Usage: memory [threads = 2]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/cpu/thread_pool.h"

using namespace gigpo::cpu;

constexpr int64_t bytes = int64_t{1} << 29, piece = 1 << 20;

// Of several goes; `moved` bytes in each.
template <class Body>
static double best_rate(ThreadPool& pool, double moved, Body body) {
  double best = 0;
  for (int i = 0; i < 7; i++) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(bytes / piece, body);
    best = std::max(best, moved / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 1e9);
  }
  return best;
}

// Eight sums, so that adding keeps up.
static uint64_t sum(const uint64_t* from, int64_t count) {
  uint64_t sums[8] = {}, total = 0;
  for (int64_t i = 0; i < count; i += 8)
    for (int j = 0; j < 8; j++) sums[j] += from[i + j];
  for (const uint64_t one : sums) total += one;
  return total;
}

int main(int argc, char** argv) {
  ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 2);
  std::vector<uint64_t> from(bytes / 8, 1), to(bytes / 8), sums(bytes / piece);
  const double read = best_rate(pool, double(bytes), [&](int64_t i) { sums[i] = sum(from.data() + i * piece / 8, piece / 8); });
  const double copied = best_rate(pool, 2.0 * double(bytes),
                                  [&](int64_t i) { std::memcpy(to.data() + i * piece / 8, from.data() + i * piece / 8, piece); });
  uint64_t total = 0;
  for (const uint64_t one : sums) total += one;
  if (total != bytes / 8 || to != from) return 1;
  std::printf("{\"threads\": %d, \"read\": %.1f, \"copied\": %.1f}\n", pool.size(), read, copied);
}
