// Replicas of a policy on several CUDA devices: four emulated ones, or the GPUs of this machine. With one GPU all replicas are on it.
#include <cstdlib>

#include "test/core/replica_checks.h"
#include "test/cuda/on_card.h"

using namespace gigpo;

namespace {

std::unique_ptr<Device> on_cuda(int rank) {
  const DeviceReport report = device_report();
  return make_cuda_device({.precision = Type::f32, .cublas = false, .index = report.devices[size_t(rank) % report.devices.size()].index});
}

void sums() {
  for (const int count : {2, 3, 4}) test::check_sums(on_cuda, count, 1003);
}

#ifdef GIGPO_CUDA_EMULATOR
constexpr int steps = 3;
#else
constexpr int steps = 10;
#endif

void training() {
  const TrainingLoss loss{.head = test::policy_loss(), .aggregation = Aggregation::sequence_mean_token_mean};
  for (const int count : {2, 4}) test::check_training(on_cuda, test::tiny_model(true), count, loss, steps, 1e-4);
}

void failure() { test::check_failure(on_cuda, test::tiny_model(true)); }

void missing() { CHECK_THROWS(make_cuda_device({.index = 4096}), "DEVICE_UNAVAILABLE"); }

}  // namespace

int main() {
  setenv("GIGPO_EMULATED_GPUS", "4", 1);
  return test::on_card(
      std::initializer_list<test::Test>{{"sums", sums}, {"training", training}, {"failure", failure}, {"missing", missing}});
}
