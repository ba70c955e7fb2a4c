// Checks of sampling on any device: completions depend only on their own request.
#pragma once
#include <map>

#include "test/core/engine_subject.h"

namespace gigpo::test {

// Groups with one prompt each, and one prompt that takes several steps to process. `constraint` applies to some
// requests; their texts may end early or be cut off.
inline std::vector<SampleRequest> sample_requests(int64_t vocabulary, int64_t longest,
                                                  const std::shared_ptr<TokenMasks>& constraint = nullptr) {
  std::vector<SampleRequest> requests;
  for (const int64_t length : {int64_t{1}, int64_t{15}, int64_t{16}, int64_t{40}, int64_t{100}, longest}) {
    for (uint32_t member = 0; member < (length == longest ? 1 : 4); member++) {
      SampleRequest request;
      request.id = requests.size();
      request.prompt = random_tokens(length, uint32_t(length), vocabulary);
      request.max_tokens = 5 + 9 * member;
      request.temperature = member == 3 ? 0 : 0.5f + float(member);
      request.stop_tokens = {int32_t(member)};
      request.key = {uint32_t(length), member};
      if (member < 2) request.constraint = constraint;
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

inline void run_until_idle(Subject& subject, std::vector<Completion>& done) {
  while (subject.engine.sampling()) subject.engine.sample_step(done);
}

inline bool same(const Completion& a, const Completion& b) {
  return a.id == b.id && a.tokens == b.tokens && a.log_probs == b.log_probs && a.entropies == b.entropies && a.stopped == b.stopped;
}

inline void expect_same(std::vector<Completion> found, const std::vector<Completion>& wanted, const char* what) {
  std::sort(found.begin(), found.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
  CHECK(found.size() == wanted.size(), "%s: %d completions", what, int(found.size()));
  for (size_t i = 0; i < std::min(found.size(), wanted.size()); i++) {
    CHECK(same(found[i], wanted[i]), "%s: completion %d differs", what, int(wanted[i].id));
  }
}

inline void check_generation(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject subject(make_device, config, {.step_tokens = bounds.step_tokens});
  const std::vector<SampleRequest> requests = sample_requests(config.vocabulary_size, bounds.longest_prompt, small_grammar());
  std::vector<Completion> alone;
  for (const SampleRequest& request : requests) {
    subject.forget_cached();  // no shared prefixes
    subject.engine.submit(request);
    run_until_idle(subject, alone);
  }
  // The last token of a completion is sampled but not computed, even on a device that is one step ahead.
  int64_t sampled = 0, computed = 0;
  for (size_t i = 0; i < requests.size(); i++) {
    sampled += int64_t(alone[i].tokens.size());
    computed += int64_t(requests[i].prompt.size() + alone[i].tokens.size()) - 1;
  }
  const GeneratorCounts& counts = *subject.engine.counts();
  CHECK(counts.reused == 0 && counts.sampled == sampled && counts.computed == computed, "%d sampled, not %d; %d computed, not %d",
        int(counts.sampled), int(sampled), int(counts.computed), int(computed));

  int64_t held = 0, ended = 0;
  for (size_t i = 0; i < requests.size(); i++) {
    const TrainingRow row = step_row(requests[i].prompt, alone[i].tokens, 0, requests[i].constraint);
    if (requests[i].constraint) held++, ended += alone[i].stopped && alone[i].tokens.back() == 49;
    const float temperature = requests[i].temperature == 0 ? 1 : requests[i].temperature;
    const Scores scores = subject.engine.scores(Policy::current, FlatBatch({row}), temperature, subject.cancelled);
    CHECK(alone[i].entropies.size() == alone[i].tokens.size());
    for (int64_t t = 0; t < row.sampled(); t++) {
      CHECK(std::abs(scores.log_probs[t] - alone[i].log_probs[t]) < bounds.log_prob, "completion %d, token %d: %g, not %g",
            int(i), int(t), alone[i].log_probs[t], scores.log_probs[t]);
      CHECK(std::abs(scores.entropies[t] - alone[i].entropies[t]) < bounds.log_prob, "completion %d, token %d: an entropy of %g, not %g",
            int(i), int(t), alone[i].entropies[t], scores.entropies[t]);
    }
  }

  CHECK(held == 11 && ended >= 5 && ended < held, "%d constrained by a grammar, %d of them complete", int(held), int(ended));

  const auto run_all = [&](Subject& with, const char* what) {
    std::vector<Completion> done;
    for (const SampleRequest& request : requests) with.engine.submit(request);
    run_until_idle(with, done);
    expect_same(std::move(done), alone, what);
  };
  subject.forget_cached();
  run_all(subject, "all requests together");
  CHECK(subject.engine.counts()->reused > 0);
  run_all(subject, "again, from the cache");

  // The cache has room for the longest request only, so the others are preempted.
  const int64_t page_bytes = 2 * config.layers * config.key_value_columns() * PagedCache::page_size *
                             bytes_of(subject.engine.device().activation_type());
  const int64_t few_pages = (bounds.longest_prompt + 36) / PagedCache::page_size;
  Subject small(make_device, config, {.cache_bytes = few_pages * page_bytes, .step_tokens = bounds.step_tokens});
  run_all(small, "with a small cache");
  CHECK(small.engine.counts()->preempted > 0);

  // Cancelling requests, and abandoning a step, release their resources and leave a consistent state.
  std::vector<Completion> done;
  for (const SampleRequest& request : requests) small.engine.submit(request);
  for (int i = 0; i < 3; i++) small.engine.sample_step(done);
  std::unordered_set<uint64_t> ids;
  for (const SampleRequest& request : requests) ids.insert(request.id);
  small.engine.cancel(ids);
  CHECK(!small.engine.sampling());
  run_all(small, "after cancelling");
  for (const SampleRequest& request : requests) small.engine.submit(request);
  for (int i = 0; i < 3; i++) small.engine.sample_step(done);
  small.engine.abandon();
  CHECK(!small.engine.sampling());
  run_all(small, "after abandoning");

  SampleRequest bad = requests[0];
  bad.prompt.clear();
  CHECK_THROWS(subject.engine.submit(bad), "BAD_ARGUMENT");
  bad.prompt.assign(config.max_positions, 1);
  CHECK_THROWS(subject.engine.submit(bad), "BAD_ARGUMENT");
  bad.prompt = requests[0].prompt, bad.max_tokens = INT64_MAX;
  CHECK_THROWS(subject.engine.submit(bad), "BAD_ARGUMENT");
}

}  // namespace gigpo::test
