#include "core/replicas.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace gigpo {

// Elements of a slice that are added at once.
constexpr int64_t most_at_once = int64_t{1} << 20;

void Replicas::fail() {
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  changed_.notify_all();
}

void Replicas::meet() {
  std::unique_lock lock(mutex_);
  const uint64_t meeting = meetings_;
  if (!failed_ && ++present_ == count_) {
    present_ = 0;
    meetings_++;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return failed_ || meetings_ != meeting; });
  if (meetings_ == meeting) throw Error("ABORTED", "Another device of this policy failed.");
}

void Replicas::meet(int rank, const Place& place) {
  {
    const std::lock_guard lock(mutex_);
    places_[size_t(rank)] = place;
  }
  meet();
}

int64_t Replicas::least(int rank, int64_t value) {
  meet(rank, {value});
  const auto smaller = [](const Place& one, const Place& other) { return one.value < other.value; };
  const int64_t found = std::min_element(places_.begin(), places_.end(), smaller)->value;
  meet();  // until all have read
  return found;
}

void Replicas::add_up(int rank, Device& device, Tensor values, Arena& arena) {
  const auto begin_of = [&](int of) { return values.columns * of / count_; };
  float* const own = values.floats();
  const auto copy = [&](int from, int64_t at, float* to, int64_t count) {
    device.receive(*places_[size_t(from)].device, places_[size_t(from)].floats + at, to, size_t(count) * sizeof(float));
  };
  device.wait();  // others read these values
  meet(rank, {0, &device, own});
  arena.reset();
  const int64_t end = begin_of(rank + 1), most = std::min(most_at_once, end - begin_of(rank));
  float* const parts = arena.floats(count_ * most);
  for (int64_t at = begin_of(rank), count; at < end; at += count) {
    count = std::min(most, end - at);
    for (int from = 0; from < count_; from++) copy(from, at, parts + from * count, count);
    device.zero(own + at, size_t(count) * sizeof(float));
    device.bias_backward({parts, Type::f32, count_, count, count}, values.matrix(at, 1, count));
  }
  device.wait();
  meet();
  for (int from = 0; from < count_; from++) {
    if (from != rank) copy(from, begin_of(from), own + begin_of(from), begin_of(from + 1) - begin_of(from));
  }
  device.wait();
  meet();  // until all have read
}

std::vector<int> divide(const std::vector<int64_t>& sizes, int count) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t one, size_t other) { return sizes[one] > sizes[other]; });
  std::vector<int> owners(sizes.size());
  std::vector<int64_t> loads(size_t(count), 0);
  for (const size_t item : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    owners[item] = int(least - loads.begin());
    *least += sizes[item];
  }
  return owners;
}

}  // namespace gigpo
