#include "core/kernels/anchor_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

namespace gigpo {

namespace {

// Odd words without a pattern: fractional parts of the square roots of the first primes.
constexpr uint64_t secret[8] = {0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
                                0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179};

// Full product of two words, folded by xor: every input bit affects every output bit.
inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

inline uint64_t word(const uint8_t* bytes, int index) {
  uint64_t value;
  std::memcpy(&value, bytes + 8 * index, 8);
  return value;
}

constexpr int64_t stripe = 64;

}  // namespace

// Four independent chains of wide multiplications, so that their latencies overlap. The last stripe overlaps the
// previous one, and a short state is padded with zeros (its length is part of the seed).
Hash128 hash128(const uint8_t* bytes, int64_t length, uint64_t seed) {
  const uint64_t start = mix(seed ^ secret[0], uint64_t(length) ^ secret[1]);
  uint64_t chain[4] = {start, start ^ secret[5], start ^ secret[6], start ^ secret[7]};
  const auto absorb = [&chain](const uint8_t* data) {
    for (int i = 0; i < 4; i++) chain[i] = mix(word(data, 2 * i) ^ secret[i], word(data, 2 * i + 1) ^ chain[i]);
  };
  uint8_t padded[stripe] = {};
  if (length < stripe) {
    if (length > 0) std::memcpy(padded, bytes, size_t(length));
    absorb(padded);
  } else {
    for (int64_t at = 0; at + stripe < length; at += stripe) absorb(bytes + at);
    absorb(bytes + length - stripe);
  }
  const uint64_t a = mix(chain[0] ^ secret[4], chain[1] ^ secret[5]);
  const uint64_t b = mix(chain[2] ^ secret[6], chain[3] ^ secret[7]);
  return {mix(a ^ secret[2], b ^ secret[3]), mix(chain[0] + chain[2] + secret[6], chain[1] + chain[3] + start)};
}

namespace {

struct States {
  const int32_t* tasks;
  const uint8_t* bytes;
  const int64_t* offsets;

  int64_t length(int32_t i) const { return offsets[i + 1] - offsets[i]; }
  bool same(int32_t a, int32_t b) const {
    const int64_t size = length(a);
    return tasks[a] == tasks[b] && size == length(b) &&
           (size == 0 || std::memcmp(bytes + offsets[a], bytes + offsets[b], size_t(size)) == 0);
  }
};

// Hash table with open addressing and linear probing, at most half full. A slot holds the index of the first state of
// its group.
class Table {
 public:
  explicit Table(int64_t states) : slots_(std::bit_ceil(uint64_t(states) * 2 + 1)), mask_(slots_.size() - 1) {}

  // `leaders[i]` becomes the first state that is equal to state i. The slots of a batch are prefetched before any is
  // compared.
  void insert(const States& states, int count, const int32_t* indices, const Hash128* hashes, int32_t* leaders) {
    for (int i = 0; i < count; i++) __builtin_prefetch(&slots_[hashes[i].low & mask_]);
    for (int i = 0; i < count; i++) leaders[indices[i]] = find_or_insert(states, indices[i], hashes[i]);
  }

 private:
  struct Slot {
    uint32_t tag : 31 = 0;
    uint32_t occupied : 1 = 0;
    int32_t state = 0;
  };

  static uint32_t tag(Hash128 hash) { return uint32_t(hash.high) >> 1; }

  int32_t find_or_insert(const States& states, int32_t state, Hash128 hash) {
    for (uint64_t at = hash.low & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (!slot.occupied) {
        slot.tag = tag(hash), slot.occupied = 1, slot.state = state;
        return state;
      }
      if (slot.tag == tag(hash) && states.same(slot.state, state)) return slot.state;
    }
  }

  std::vector<Slot> slots_;
  uint64_t mask_;
};

// States per batch: few enough that their hashed bytes are still in the CPU cache when they are compared, enough to
// benefit from reading them in order.
constexpr int batch = 128;

// Tasks never share a group, so each thread handles every `shares`-th task and never touches a state of another thread.
int share_of(int32_t task, int shares) { return shares == 1 ? 0 : int(uint32_t(task) % uint32_t(shares)); }

void group_share(int32_t count, const States& states, AnchorHash hash, int share, int shares, Table& table,
                 int32_t* leaders) {
  int32_t indices[batch];
  Hash128 hashes[batch];
  int size = 0;
  for (int32_t i = 0; i < count; i++) {
    if (share_of(states.tasks[i], shares) != share) continue;
    indices[size] = i;
    hashes[size] = hash(states.bytes + states.offsets[i], states.length(i), uint64_t(uint32_t(states.tasks[i])));
    if (++size < batch) continue;
    table.insert(states, size, indices, hashes, leaders);
    size = 0;
  }
  table.insert(states, size, indices, hashes, leaders);
}

}  // namespace

int32_t group_anchors(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                      int32_t* groups, int threads, AnchorHash hash) {
  if (count <= 0) return 0;
  for (int32_t i = 0; i < count; i++)
    if (offsets[i + 1] < offsets[i]) throw Error("BAD_ARGUMENT", "the offsets of the states must not decrease");
  const States states{tasks, bytes, offsets};
  constexpr int64_t worth_a_thread = 1 << 22;  // bytes; starting a thread takes as long as hashing some hundred KB
  const auto shares = int(std::clamp<int64_t>((offsets[count] - offsets[0]) / worth_a_thread, 1, std::max(threads, 1)));
  // All memory is allocated before the threads start, so that nothing in them can throw.
  std::vector<int64_t> sizes(size_t(shares), 0);
  for (int32_t i = 0; i < count; i++) sizes[size_t(share_of(tasks[i], shares))]++;
  std::vector<Table> tables(sizes.begin(), sizes.end());
  {
    std::vector<std::jthread> others;
    others.reserve(size_t(shares));
    const auto work = [&](int share) {
      group_share(count, states, hash, share, shares, tables[size_t(share)], groups);
    };
    for (int share = 1; share < shares; share++) {
      try {
        others.emplace_back(work, share);
      } catch (const std::system_error&) {  // no thread available: runs on this one
        work(share);
      }
    }
    work(0);
  }

  // Converts leaders to dense ids, in place: a leader precedes its followers, so its id exists before they need it.
  int32_t next = 0;
  for (int32_t i = 0; i < count; i++) groups[i] = groups[i] == i ? next++ : groups[groups[i]];
  return next;
}

}  // namespace gigpo
