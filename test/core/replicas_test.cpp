// Replicas of a policy on CPU devices, as on several GPUs.
#include "test/core/replica_checks.h"

using namespace gigpo;

namespace {

std::unique_ptr<Device> on_cpu(int) { return make_cpu_device(1); }

void sums() {
  for (const int count : {1, 2, 3, 4}) {
    for (const int64_t size : {int64_t{1}, int64_t{3}, int64_t{1000}}) test::check_sums(on_cpu, count, size);
  }
  test::check_sums(on_cpu, 2, (int64_t{5} << 19) + 7);  // more than is added at once
}

void shares() {
  CHECK((divide({5, 1, 4, 2, 3}, 2) == std::vector<int>{0, 0, 1, 0, 1}));
  CHECK((divide({1, 1, 1}, 4) == std::vector<int>{0, 1, 2}));
  CHECK((divide({7, 7}, 1) == std::vector<int>{0, 0}));
  CHECK(divide({}, 3).empty());
}

void training() {
  TrainingLoss loss{.head = test::policy_loss(), .aggregation = Aggregation::sequence_mean_token_mean};
  for (const int count : {2, 4}) test::check_training(on_cpu, test::tiny_model(true), count, loss, 10, 1e-4);
  loss.ratio = RatioLevel::sequence, loss.unit = Unit::sequence;
  test::check_training(on_cpu, test::tiny_model(false), 3, loss, 10, 1e-4);
}

void failure() { test::check_failure(on_cpu, test::tiny_model(true)); }

void least() {
  const auto replicas = std::make_shared<Replicas>(3);
  test::on_threads(3, [&](int rank) { CHECK(replicas->least(rank, 10 - rank) == 8); });
}

}  // namespace

int main() {
  return test::run_all(std::initializer_list<test::Test>{
      {"sums", sums}, {"shares", shares}, {"training", training}, {"failure", failure}, {"least", least}});
}
