// Sampling one step ahead of the host: a device that queues its work must give the same results as one that does not.
#include <numeric>

#include "test/core/engine_checks.h"
#include "test/core/indirect_device.h"

using namespace gigpo;
using test::Subject;

namespace {

std::unique_ptr<Device> on_cpu() { return make_cpu_device(1); }
std::unique_ptr<Device> queued() { return std::make_unique<test::QueuedDevice>(on_cpu()); }

Completion complete(Subject& subject, const SampleRequest& request) {
  std::vector<Completion> done;
  subject.engine.submit(request);
  test::run_until_idle(subject, done);
  CHECK(done.size() == 1);
  return done.at(0);
}

void check_counts(Subject& found, Subject& wanted, const char* what) {
  const GeneratorCounts &a = *found.engine.counts(), &b = *wanted.engine.counts();
  CHECK(a.computed == b.computed && a.reused == b.reused && a.sampled == b.sampled && a.preempted == b.preempted,
        "%s: %d computed, %d reused, %d sampled, %d preempted; not %d, %d, %d, %d", what, int(a.computed), int(a.reused), int(a.sampled),
        int(a.preempted), int(b.computed), int(b.reused), int(b.sampled), int(b.preempted));
}

// The host never waits for a step without another one queued, except for the last.
void test_next_step_is_queued_before_reading() {
  Subject subject(queued, test::tiny_model(true));
  SampleRequest request = test::sample_requests(53, 200).back();
  request.max_tokens = 30, request.stop_tokens.clear();
  CHECK(complete(subject, request).tokens.size() == 30);
  const auto& device = dynamic_cast<test::QueuedDevice&>(subject.engine.device());
  CHECK(device.idle_waits == 1, "%d waits with nothing queued", int(device.idle_waits));
  CHECK(subject.engine.counts()->computed == 200 + 29);  // an end by length is known in advance
}

// A sequence ends by a stop token while the step after it is in progress. If the stop token would fill a page, that
// page must not be found by a prompt that continues after it, just as if it had never been computed.
void test_tokens_after_a_stop_are_dropped() {
  const ModelConfig config = test::tiny_model(true);
  for (const int64_t reply : {3, 12, 13, 20, 28}) {  // after a prompt of 20 tokens; the second and the last length fill a page
    Subject plain(on_cpu, config), ahead(queued, config);
    SampleRequest request;
    request.prompt = test::random_tokens(20, 5, config.vocabulary_size);
    request.max_tokens = reply, request.temperature = 3, request.key = {4, uint32_t(reply)};
    Completion whole = complete(plain, request);
    while (std::count(whole.tokens.begin(), whole.tokens.end(), whole.tokens.back()) > 1) {  // the last token must be unique
      request.key.low++;
      whole = complete(plain, request);
    }
    request.max_tokens = 100, request.stop_tokens = {whole.tokens.back()};
    Subject reference(on_cpu, config);
    const Completion wanted = complete(reference, request), found = complete(ahead, request);
    CHECK(wanted.stopped && test::same(found, wanted) && int64_t(found.tokens.size()) == reply, "%d tokens", int(found.tokens.size()));
    check_counts(ahead, reference, "with a stop");
    CHECK(ahead.engine.counts()->sampled == reply && ahead.engine.counts()->computed == 20 + reply - 1);

    SampleRequest next = request;
    next.prompt.insert(next.prompt.end(), found.tokens.begin(), found.tokens.end());
    for (const int32_t token : test::random_tokens(7, 6, config.vocabulary_size)) next.prompt.push_back(token);
    CHECK(test::same(complete(ahead, next), complete(reference, next)));
    check_counts(ahead, reference, "the next turn");
  }
}

// Four pages: the first sequence samples its last token with three of them, then the second sequence needs its second
// page. It gets one, because the last token is read before any sequence is preempted.
void test_step_is_read_before_preemption() {
  const ModelConfig config = test::tiny_model(true);
  Subject plain(on_cpu, config, {.cache_bytes = 1}), ahead(queued, config, {.cache_bytes = 1});
  for (Subject* subject : {&plain, &ahead}) {
    std::vector<Completion> done;
    subject->engine.submit({0, test::random_tokens(32, 0, config.vocabulary_size), 2, 1, {}, {1, 1}});
    subject->engine.submit({1, test::random_tokens(15, 1, config.vocabulary_size), 10, 1, {}, {1, 2}});
    test::run_until_idle(*subject, done);
    CHECK(done.size() == 2 && done[0].id == 0 && done[1].tokens.size() == 10);
  }
  check_counts(ahead, plain, "with four pages");
}

// Random submission and cancellation of requests, with common prefixes and various cache sizes.
void test_random_submissions_and_cancellations() {
  const ModelConfig config = test::tiny_model(false);
  Subject alone(on_cpu, config);
  int64_t preempted = 0, cancelled = 0, stopped = 0;
  for (uint32_t round = 0; round < 100; round++) {
    uint32_t drawn = 0;
    const auto below = [&](uint32_t most) { return philox({77, round}, drawn++, 0, 0, 0).word[0] % most; };
    const int64_t page_bytes = cache_bytes_per_token(config, Type::f32) * PagedCache::page_size;
    Subject subject(queued, config, {.cache_bytes = page_bytes * (7 + below(6)), .step_tokens = 5 + below(60)});
    std::vector<Completion> wanted, done;
    std::vector<SampleRequest> requests;
    std::unordered_set<uint64_t> cancelled_ids;
    for (uint32_t i = 0; i < 14; i++) {
      SampleRequest request;
      request.id = i;
      request.prompt = test::random_tokens(1 + below(60), below(2), config.vocabulary_size);
      request.max_tokens = 1 + below(40), request.temperature = 2, request.key = {round, i};
      for (uint32_t stop = 0; stop < (round % 2 ? 1 : 8); stop++) request.stop_tokens.push_back(int32_t(below(53)));
      if (i > 0 && below(4) == 0) request = requests.back(), request.id = i;  // a duplicate
      requests.push_back(request);
    }
    for (size_t next = 0; next < requests.size() || subject.engine.sampling();) {
      while (next < requests.size() && below(3) != 0) subject.engine.submit(requests[next++]);
      if (next > 0 && below(12) == 0) {
        const uint64_t id = below(uint32_t(next));
        const bool ended = std::any_of(done.begin(), done.end(), [&](const Completion& each) { return each.id == id; });
        subject.engine.cancel({id});
        if (!ended) cancelled_ids.insert(id);
      }
      subject.engine.sample_step(done);
    }
    alone.forget_cached();
    for (const SampleRequest& request : requests) {
      if (!cancelled_ids.contains(request.id)) wanted.push_back(complete(alone, request));
    }
    test::expect_same(done, wanted, "random requests");
    preempted += subject.engine.counts()->preempted, cancelled += int64_t(cancelled_ids.size());
    stopped += std::count_if(done.begin(), done.end(), [](const Completion& each) { return each.stopped; });
  }
  CHECK(preempted > 20 && cancelled > 100 && stopped > 500, "%d preempted, %d cancelled, %d stopped", int(preempted), int(cancelled),
        int(stopped));
}

// Region shared with training, which runs after every step: tokens sampled so far must be read before the sequence is
// preempted.
void test_step_is_read_before_the_cache_is_lost() {
  const ModelConfig config = test::tiny_model(true);
  const test::Setup setup{.step_tokens = 24, .region_bytes = 1 << 20};
  Subject plain(on_cpu, config, setup), ahead(queued, config, setup);
  const std::vector<test::TrainingRow> rows = test::training_rows(plain);
  std::vector<int32_t> stops(25);  // half of all tokens
  std::iota(stops.begin(), stops.end(), 0);
  std::vector<Completion> wanted, found;
  for (const auto& [subject, done] : {std::pair{&plain, &wanted}, {&ahead, &found}}) {
    for (uint32_t i = 0; i < 12; i++) {
      subject->engine.submit({i, test::random_tokens(4, i, config.vocabulary_size), 5, 3, stops, {2, i}});
    }
    while (subject->engine.sampling()) {
      subject->engine.sample_step(*done);
      test::train(*subject, rows, test::policy_loss());
    }
  }
  std::sort(wanted.begin(), wanted.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
  test::expect_same(found, wanted, "with a shared region");
  check_counts(ahead, plain, "with a shared region");
}

// A group with one prompt, and all checks of the engine.
void test_engine_checks() {
  for (const bool biases_and_tied : {false, true}) {
    const ModelConfig config = test::tiny_model(biases_and_tied);
    Subject plain(on_cpu, config), ahead(queued, config);
    std::vector<Completion> wanted, found;
    for (const SampleRequest& request : test::sample_requests(config.vocabulary_size, 300)) {
      plain.engine.submit(request), ahead.engine.submit(request);
    }
    test::run_until_idle(plain, wanted), test::run_until_idle(ahead, found);
    std::sort(wanted.begin(), wanted.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
    test::expect_same(found, wanted, "a step ahead");
    check_counts(ahead, plain, "together");
    test::check_engine(queued, config, {0, 2e-5});
  }
}

}  // namespace

int main() {
  test_next_step_is_queued_before_reading();
  test_tokens_after_a_stop_are_dropped();
  test_step_is_read_before_preemption();
  test_random_submissions_and_cancellations();
  test_step_is_read_before_the_cache_is_lost();
  test_engine_checks();
  return test::report();
}
