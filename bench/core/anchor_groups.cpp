// How fast anchor states are hashed and grouped. States repeat as in an agent's run: each is one of `distinct` states
// of its task, with the difference somewhere in the bytes.
#include "core/kernels/anchor_groups.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "core/random.h"

using namespace gigpo;

namespace {

struct States {
  std::vector<int32_t> tasks;
  std::vector<uint8_t> bytes;
  std::vector<int64_t> offsets;
};

States make_states(int32_t count, int64_t length, int32_t tasks, uint32_t distinct) {
  States states;
  states.bytes.resize(size_t(count * length));
  states.offsets.push_back(0);
  for (int32_t i = 0; i < count; i++) {
    const int32_t task = int32_t(int64_t(i) * tasks / count);
    const uint32_t kind = philox({1, 2}, uint32_t(i), 0, 0, 0).word[0] % distinct;
    uint8_t* state = states.bytes.data() + i * length;
    std::memset(state, 'a' + task % 26, size_t(length));
    std::memcpy(state + philox({3, 4}, kind, 0, 0, 0).word[0] % uint64_t(length - 3), &kind, 4);
    states.tasks.push_back(task);
    states.offsets.push_back((i + 1) * length);
  }
  return states;
}

template <typename Work>
double fastest_ms(int runs, const Work& work) {
  double best = 1e30;
  for (int run = 0; run < runs; run++) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main() {
  const std::pair<int32_t, int64_t> sizes[] = {{6400, 500}, {6400, 4000}, {51200, 500}, {400000, 500}};
  for (const auto& [count, length] : sizes) {
    const States states = make_states(count, length, 16, uint32_t(count / 40));
    const double gigabytes = double(states.bytes.size()) * 1e-9;
    const int runs = std::max(7, 2000000 / count);
    volatile uint64_t sink = 0;
    const double hash = fastest_ms(runs, [&] {
      for (int32_t i = 0; i < count; i++) sink = sink + hash128(states.bytes.data() + i * length, length, 0).low;
    });
    std::vector<int32_t> groups(static_cast<size_t>(count));
    for (const int threads : {1, 2}) {
      int32_t found = 0;
      const double all = fastest_ms(runs, [&] {
        found = group_anchors(count, states.tasks.data(), states.bytes.data(), states.offsets.data(), groups.data(),
                              threads);
      });
      std::printf("%6d states x %4d bytes, %d groups, %d thread(s): %7.3f ms, %5.1f GB/s (hash alone %5.1f GB/s)\n", count,
                  int(length), found, threads, all, gigabytes / all * 1e3, gigabytes / hash * 1e3);
    }
  }
}
