// Checks of replicas on any kind of device: sums, shares, equal weights, and an end without waiting if one fails.
#pragma once
#include <thread>

#include "test/core/engine_subject.h"

namespace gigpo::test {

// Device of a replica, by its rank.
using ReplicaFactory = std::function<std::unique_ptr<Device>(int rank)>;

// Runs `work` once for each rank, each on its own thread.
template <class Work>
void on_threads(int count, Work work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; rank++) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

inline void check_sums(const ReplicaFactory& make_device, int count, int64_t size) {
  const auto value = [](int rank, int64_t i) { return std::ldexp(1.f + Subject::uniform(i), rank); };
  const auto replicas = std::make_shared<Replicas>(count);
  const auto one = std::vector<float>(size_t(size), 0.f);
  std::vector<std::vector<float>> sums(size_t(count), one);
  on_threads(count, [&](int rank) {
    const auto device = make_device(rank);
    Arena arena(*device);
    FlatBuffer buffer(*device, Type::f32, size);
    std::vector<float>& values = sums[size_t(rank)];
    for (int64_t i = 0; i < size; i++) values[size_t(i)] = value(rank, i);
    for (int time = 0; time < 2; time++) {
      buffer.write(0, values.data(), size);
      replicas->add_up(rank, *device, buffer.values(), arena);
      buffer.read(0, values.data(), size);
    }
  });
  bool right = true;
  for (int64_t i = 0; i < size; i++) {
    float once = 0, twice = 0;
    for (int rank = 0; rank < count; rank++) once += value(rank, i);
    for (int rank = 0; rank < count; rank++) twice += once;
    for (const std::vector<float>& sum : sums) right = right && sum[size_t(i)] == twice;
  }
  CHECK(right, "%d replicas, %d values", count, int(size));
}

// Trains as one engine, and as replicas. Weights of the replicas are equal, and near those of the one.
inline void check_training(const ReplicaFactory& make_device, const ModelConfig& config, int count, const TrainingLoss& loss, int steps,
                           double bound) {
  const OptimizerOptions step{1e-3, 0.9, 0.95, 1e-8, 0.01, 1};
  Subject one([&] { return make_device(0); }, config);
  const std::vector<TrainingRow> rows = training_rows(one);
  std::vector<double> wanted;
  for (int i = 0; i < steps; i++) {
    wanted.push_back(train(one, rows, loss).loss);
    one.engine.actor().optimizer_step(step);
  }
  const auto replicas = std::make_shared<Replicas>(count);
  std::vector<std::vector<float>> weights{size_t(count)};
  std::vector<std::vector<double>> losses{size_t(count)};
  std::vector<int64_t> tokens(size_t(count), 0);
  on_threads(count, [&](int rank) {
    Subject subject([&] { return make_device(rank); }, config, {.replica = {replicas, rank}});
    for (int i = 0; i < steps; i++) {
      const LossReport report = train(subject, rows, loss);
      losses[size_t(rank)].push_back(report.loss);
      tokens[size_t(rank)] = report.tokens;
      subject.engine.actor().optimizer_step(step);
    }
    weights[size_t(rank)] = subject.weights();
  });
  for (int i = 0; i < steps; i++) {
    double total = 0;
    for (const std::vector<double>& own : losses) total += own[size_t(i)];
    CHECK(std::abs(total - wanted[size_t(i)]) < 1e-6, "%d replicas, step %d: %.9f instead of %.9f", count, i, total, wanted[size_t(i)]);
  }
  for (const std::vector<float>& own : weights) CHECK(own == weights[0]);
  CHECK(distance(weights[0], one.weights()) < bound, "%g", distance(weights[0], one.weights()));
  CHECK(*std::max_element(tokens.begin(), tokens.end()) < static_cast<const TrainingBatch&>(FlatBatch(rows)).sampled(), "one replica has all tokens");
}

// Replicas that wait for one that fails end with an error, then and later.
inline void check_failure(const ReplicaFactory& make_device, const ModelConfig& config) {
  const auto replicas = std::make_shared<Replicas>(3);
  on_threads(3, [&](int rank) {
    Subject subject([&] { return make_device(rank); }, config, {.replica = {replicas, rank}});
    const auto step = [&] { subject.engine.actor().optimizer_step({1e-3, 0.9, 0.95, 1e-8, 0.01, 1}); };
    step();
    if (rank == 1) return replicas->fail();
    CHECK_THROWS(step(), "ABORTED");
    CHECK_THROWS(step(), "ABORTED");
  });
}

}  // namespace gigpo::test
