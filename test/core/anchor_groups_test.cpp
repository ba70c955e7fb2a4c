// Anchor groups on the CPU against a map from (task, bytes), with colliding hashes and many threads.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/kernels/anchor_groups.h"
#include "core/random.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

uint32_t random_word(uint32_t stream, uint32_t i) { return philox({17, 4}, i, stream, 0, 0).word[0]; }

struct States {
  std::vector<int32_t> tasks;
  std::string bytes;
  std::vector<int64_t> offsets = {0};

  void add(int32_t task, const std::string& state) {
    tasks.push_back(task);
    bytes += state;
    offsets.push_back(int64_t(bytes.size()));
  }
  std::vector<int32_t> group(int32_t* count, int threads = 1, AnchorHash hash = hash128) const {
    std::vector<int32_t> groups(tasks.size(), -7);
    *count = group_anchors(int32_t(tasks.size()), tasks.data(), reinterpret_cast<const uint8_t*>(bytes.data()),
                           offsets.data(), groups.data(), threads, hash);
    return groups;
  }
  std::vector<int32_t> expected(int32_t* count) const {
    std::map<std::pair<int32_t, std::string>, int32_t> seen;
    std::vector<int32_t> groups;
    for (size_t i = 0; i < tasks.size(); i++) {
      const std::string state = bytes.substr(size_t(offsets[i]), size_t(offsets[i + 1] - offsets[i]));
      groups.push_back(seen.try_emplace({tasks[i], state}, int32_t(seen.size())).first->second);
    }
    *count = int32_t(seen.size());
    return groups;
  }
};

// States with lengths around the stripes of the hash, some repeated; each pair of tasks has some in common.
States random_states(uint32_t stream, int32_t count, uint32_t kinds, uint32_t longest) {
  States states;
  for (int32_t i = 0; i < count; i++) {
    const uint32_t kind = random_word(stream, uint32_t(i)) % kinds;
    std::string state(random_word(stream + 1, kind) % (longest + 1), 'a');
    for (size_t j = 0; j < state.size(); j += 97) state[j] = char(random_word(stream + 2, kind * 64 + uint32_t(j)));
    states.add(int32_t(random_word(stream + 3, uint32_t(i)) % 5) - 2, state);
  }
  return states;
}

void test_equal_states_of_a_task_share_a_group_in_order_of_first_occurrence() {
  States states;
  for (const auto& [task, state] : std::vector<std::pair<int32_t, std::string>>{
           {7, "kitchen"}, {7, ""}, {7, "kitchen"}, {8, "kitchen"}, {7, std::string("\0", 1)}, {8, ""}, {7, ""},
           {7, std::string(200, 'x')}, {7, std::string(201, 'x')}, {-1, "kitchen"}, {7, std::string(200, 'x')}})
    states.add(task, state);
  int32_t count = 0;
  CHECK(states.group(&count) == (std::vector<int32_t>{0, 1, 0, 2, 3, 4, 1, 5, 6, 7, 5}));
  CHECK(count == 8);
  CHECK(group_anchors(0, nullptr, nullptr, nullptr, nullptr) == 0);
  states.offsets[2] = 0;
  CHECK_THROWS(states.group(&count), "BAD_ARGUMENT");
}

Hash128 constant_hash(const uint8_t*, int64_t, uint64_t) { return {42, 42}; }
Hash128 length_hash(const uint8_t*, int64_t length, uint64_t) { return {uint64_t(length), 0}; }
Hash128 three_bit_hash(const uint8_t* bytes, int64_t length, uint64_t seed) {
  const Hash128 hash = hash128(bytes, length, seed);
  return {hash.low & 7, hash.high & 7};
}
Hash128 last_slot_hash(const uint8_t*, int64_t, uint64_t) { return {~uint64_t{0}, 0}; }  // probes wrap around

void test_colliding_hashes_never_merge_states() {
  const States states = random_states(100, 3000, 700, 300);
  int32_t count = 0, expected_count = 0;
  const std::vector<int32_t> expected = states.expected(&expected_count);
  CHECK(expected_count > 1000);
  for (const AnchorHash hash : {AnchorHash(hash128), constant_hash, length_hash, three_bit_hash, last_slot_hash})
    for (const int threads : {1, 3}) {
      CHECK(states.group(&count, threads, hash) == expected);
      CHECK(count == expected_count);
    }
}

void test_threads_do_not_change_the_groups() {
  const States states = random_states(200, 60000, 9000, 600);  // 18 MB: enough for four threads
  int32_t count = 0, expected_count = 0;
  const std::vector<int32_t> expected = states.expected(&expected_count);
  for (const int threads : {1, 2, 3, 4, 64}) {
    CHECK(states.group(&count, threads) == expected, "%d threads", threads);
    CHECK(count == expected_count);
  }
  CHECK(states.group(&count, 4, three_bit_hash).size() == 60000 && count == expected_count);
}

// Every flipped bit, every length and every seed changes both halves of the hash.
void test_hash_depends_on_every_bit() {
  std::map<uint64_t, int> low, high;
  const auto record = [&](Hash128 hash) { low[hash.low]++, high[hash.high]++; };
  size_t hashes = 0;
  for (const size_t length : {1, 8, 63, 64, 65, 127, 128, 129, 500}) {
    std::vector<uint8_t> bytes(length, 0x5A);
    for (size_t bit = 0; bit < 8 * length; bit++, hashes++) {
      bytes[bit / 8] ^= uint8_t(1 << bit % 8);
      record(hash128(bytes.data(), int64_t(length), 3));
      bytes[bit / 8] ^= uint8_t(1 << bit % 8);
    }
  }
  const std::vector<uint8_t> zeros(300, 0);
  for (int64_t length = 0; length <= 300; length++, hashes++) record(hash128(zeros.data(), length, 0));
  for (uint64_t seed = 1; seed <= 1000; seed++, hashes++) record(hash128(zeros.data(), 100, seed));
  CHECK(low.size() == hashes && high.size() == hashes, "%d and %d of %d", int(low.size()), int(high.size()), int(hashes));
}

}  // namespace

int main() {
  test_equal_states_of_a_task_share_a_group_in_order_of_first_occurrence();
  test_colliding_hashes_never_merge_states();
  test_threads_do_not_change_the_groups();
  test_hash_depends_on_every_bit();
  return gigpo::test::report();
}
