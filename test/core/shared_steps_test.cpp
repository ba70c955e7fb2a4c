// Steps that several clients share: how many rows of one run beside a row of another. Counted, not timed.
#include "test/core/engine_checks.h"

using namespace gigpo;
using test::Subject;

namespace {

constexpr int64_t always = 4;  // DeviceTraits::shared_tokens of the CPU

// Attention to 900 tokens takes some times as long as the products with these weights, and attention to 60 a fraction.
ModelConfig model() {
  ModelConfig config = test::tiny_model(true);
  config.max_positions = 1024, config.intermediate_size = 400;
  return config;
}

SampleRequest request_of(uint64_t id, uint64_t client, int64_t prompt, int64_t tokens, uint64_t group) {
  SampleRequest request;
  request.id = id;
  request.prompt = test::random_tokens(prompt, uint32_t(id), 53);
  request.max_tokens = tokens;
  request.key = {uint32_t(id), 7};
  request.client = client, request.group = group;
  return request;
}

struct Shares {
  double of_busy;                   // mean rows of the busy clients in a step
  int64_t steps;                    // that the others needed
  std::vector<Completion> of_rest;  // in order of their ids
};

// Steps in which `rest` is sampled while other clients have 40 rows each after `context` tokens.
Shares share(int64_t context, const std::vector<SampleRequest>& rest, uint64_t busy = 1) {
  Subject subject([] { return make_cpu_device(1); }, model(), {.cache_bytes = 16 << 20});
  std::vector<Completion> done;
  int64_t of_busy = 0;
  for (uint64_t row = 0; row < 40 * busy; row++) {
    const uint64_t client = 10 + row % busy;
    SampleRequest request = request_of(1000 + row, client, context, 100, client);
    request.on_token = [&](int32_t) { of_busy++; };
    subject.engine.submit(std::move(request));
  }
  while (of_busy < 80) subject.engine.sample_step(done);
  of_busy = 0;
  for (const SampleRequest& request : rest) subject.engine.submit(request);
  Shares shares{};
  for (done.clear(); shares.of_rest.size() < rest.size(); done.clear()) {
    subject.engine.sample_step(done);
    shares.steps++;
    for (Completion& completion : done) {
      if (completion.id < 1000) shares.of_rest.push_back(std::move(completion));
    }
  }
  shares.of_busy = double(of_busy) / double(shares.steps);
  std::sort(shares.of_rest.begin(), shares.of_rest.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
  return shares;
}

void expect_alone(const SampleRequest& request, const Completion& found) {
  Subject subject([] { return make_cpu_device(1); }, model());
  std::vector<Completion> alone;
  subject.engine.submit(request);
  test::run_until_idle(subject, alone);
  CHECK(test::same(found, alone.at(0)), "tokens depend on the other client");
}

// Beside a row without context, rows with short contexts are as many as cost almost nothing. Those with long contexts are fewer, because each
// costs as much as several: their client does not take a larger part of the step than its share.
void test_context_counts() {
  const SampleRequest one = request_of(1, 2, 4, 60, 2);
  const Shares few = share(4, {one}), many = share(900, {one});
  CHECK(few.steps == 60 && many.steps == 60, "%d and %d steps for 60 tokens", int(few.steps), int(many.steps));
  CHECK(few.of_busy > 0.5 * always && few.of_busy <= always, "%g rows with short contexts", few.of_busy);
  CHECK(many.of_busy > 0.1 && many.of_busy < 0.5 * always, "%g rows with long contexts", many.of_busy);
  expect_alone(one, few.of_rest.at(0)), expect_alone(one, many.of_rest.at(0));
}

// Rows of group 0 are of many clients, of which each has few. All of them run in each step, beside as many rows of another client as cost
// almost nothing, not as many as they are together. Hundreds of other clients leave them half of each step.
void test_group_0_is_many_clients() {
  std::vector<SampleRequest> rest;
  for (uint64_t id = 0; id < 30; id++) rest.push_back(request_of(id, 0, 4, 20, 0));
  const Shares beside_one = share(4, rest), beside_all = share(4, rest, 200);
  CHECK(beside_one.steps <= 22 && beside_all.steps <= 22, "%d and %d steps for 20 tokens", int(beside_one.steps), int(beside_all.steps));
  CHECK(beside_one.of_busy > 0.5 * always && beside_one.of_busy <= always, "%g rows", beside_one.of_busy);
  for (const uint64_t id : {0, 29}) expect_alone(rest[id], beside_one.of_rest.at(id)), expect_alone(rest[id], beside_all.of_rest.at(id));
}

}  // namespace

int main() {
  test_context_counts();
  test_group_0_is_many_clients();
  return test::report();
}
