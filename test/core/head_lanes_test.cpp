// The head on two lanes: the order of forks and joins, and that no lane stays forked after a failure.
#include "core/error.h"
#include "test/core/engine_checks.h"
#include "test/core/indirect_device.h"

using namespace gigpo;

namespace {

// Device that runs everything at once and tracks the lanes.
class TwoLanes : public test::IndirectDevice {
 public:
  using IndirectDevice::IndirectDevice;
  DeviceTraits traits() const override {
    DeviceTraits traits = IndirectDevice::traits();
    traits.lanes = 2, traits.head_logits = DeviceTraits::head_unit * 53;
    return traits;
  }
  void policy_head_concurrent(int lane, double multiplications, Tensor logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                          PolicyHeadResult* results, HeadTokens others) override {
    CHECK(!forked[lane], "lane %d is forked twice", lane);
    forked[lane] = true, forks++, concurrent += multiplications > 0;
    policy_head(logits, inputs, options, results, others);
  }
  void join(int lane) override { forked[lane] = false; }
  void matmul(Tensor a, bool transpose_a, Tensor b, bool transpose_b, Tensor c, bool accumulate, float factor) override {
    if (forks == fail_at) throw Error("OUT_OF_MEMORY", "Out of memory.");
    IndirectDevice::matmul(a, transpose_a, b, transpose_b, c, accumulate, factor);
  }

  bool forked[2] = {};
  int forks = 0, concurrent = 0, fail_at = -1;

 protected:
  void perform(std::function<void()> operation) override { operation(); }
  void finish() override {}
};

}  // namespace

int main() {
  test::Subject subject([] { return std::make_unique<TwoLanes>(make_cpu_device(1)); }, test::tiny_model(true), {.micro_batch_tokens = 1600});
  auto& device = dynamic_cast<TwoLanes&>(subject.engine.device());
  std::vector<test::TrainingRow> rows;
  for (uint32_t i = 0; i < 40; i++) rows.push_back(test::step_row({0}, test::random_tokens(35, i, 53), float(i % 3) - 1));  // three chunks
  test::add_log_probs(subject, rows);
  device.forks = device.concurrent = 0;
  test::train(subject, rows, test::policy_loss());
  CHECK(device.forks == 3 && device.concurrent == 3 && !device.forked[0] && !device.forked[1], "%d forks", device.forks);
  test::check_distributions([] { return std::make_unique<TwoLanes>(make_cpu_device(1)); }, test::tiny_model(true), {1e-2, 1e-4}, 1600);
  for (const int fork : {1, 2, 3}) {
    device.forks = 0, device.fail_at = fork;
    CHECK_THROWS(test::train(subject, rows, test::policy_loss()), "OUT_OF_MEMORY");
    CHECK(!device.forked[0] && !device.forked[1], "still forked after a failure at fork %d", fork);
  }
  return test::report();
}
