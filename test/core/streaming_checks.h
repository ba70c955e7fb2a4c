// Checks of streamed tokens, top tokens and early ends of completions, on any device.
#pragma once
#include <map>

#include "core/kernels/top_tokens.h"
#include "test/core/generation_checks.h"

namespace gigpo::test {

// Compares the top tokens of a completion with those computed from all logits.
inline void check_top_tokens(Subject& subject, const SampleRequest& request, const Completion& completion, const Bounds& bounds) {
  const size_t vocabulary = size_t(subject.engine.transformer().config().vocabulary_size), count = size_t(request.top);
  CHECK(completion.top_tokens.size() == count * completion.tokens.size() && completion.top_log_probs.size() == completion.top_tokens.size());
  std::vector<int32_t> tokens = request.prompt;
  tokens.insert(tokens.end(), completion.tokens.begin(), completion.tokens.end());
  const std::vector<float> logits = subject.engine.logits(tokens);
  Grammar::State state = request.constraint ? request.constraint->start() : Grammar::none;
  for (size_t position = 0; position < completion.tokens.size(); position++) {
    std::vector<std::pair<double, int32_t>> best;
    double total = 0;
    for (size_t token = 0; token < vocabulary; token++) {
      if (request.constraint) {
        const auto mask = request.constraint->mask(state);
        if (token >= size_t(request.constraint->vocabulary()) || !((*mask)[token / 32] >> (token % 32) & 1)) continue;
      }
      const double logit = double(logits[(request.prompt.size() - 1 + position) * vocabulary + token]) / (request.temperature == 0 ? 1 : request.temperature);
      best.push_back({logit, int32_t(token)});
      total += std::exp(logit);
    }
    if (request.constraint) state = request.constraint->next(state, completion.tokens[position]);
    std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < count; i++) {
      const int32_t token = completion.top_tokens[position * count + i];
      const double log_prob = completion.top_log_probs[position * count + i];
      if (i >= best.size()) {
        CHECK(token == no_token && std::isinf(log_prob), "position %d: token %d, though only %d tokens are possible", int(position), token, int(best.size()));
        continue;
      }
      const auto found = std::find_if(best.begin(), best.end(), [&](const auto& known) { return known.second == token; });
      if (!CHECK(found != best.end(), "position %d: token %d is not possible", int(position), token)) continue;
      CHECK(std::abs(log_prob - (found->first - std::log(total))) < bounds.log_prob, "position %d: %g, not %g", int(position), log_prob,
            found->first - std::log(total));
      CHECK(found->first > best[i].first - bounds.log_prob, "position %d: token %d does not have rank %d", int(position), token, int(i));
      if (token == completion.tokens[position])
        CHECK(std::abs(log_prob - double(completion.log_probs[position])) < 1e-5, "%g, but sampled with %g", log_prob, completion.log_probs[position]);
    }
  }
}

inline void check_streams(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject plain(make_device, config, {.step_tokens = bounds.step_tokens}), subject(make_device, config, {.step_tokens = bounds.step_tokens});
  std::vector<SampleRequest> requests = sample_requests(config.vocabulary_size, 20, small_grammar());
  std::vector<Completion> wanted, found;
  for (const SampleRequest& request : requests) plain.engine.submit(request);
  run_until_idle(plain, wanted);
  std::sort(wanted.begin(), wanted.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });

  std::map<uint64_t, std::vector<int32_t>> streamed;
  for (SampleRequest& request : requests) {
    if (request.id % 3 > 0) request.top = request.id % 3 == 1 ? SampleRequest::most_top : 3;
    if (request.id % 2 == 0) request.on_token = [&streamed, id = request.id](int32_t token) { streamed[id].push_back(token); };
    subject.engine.submit(request);
  }
  run_until_idle(subject, found);
  expect_same(found, wanted, "with top tokens");
  for (const Completion& completion : found) {
    const SampleRequest& request = requests[completion.id];
    CHECK(!request.on_token || streamed[completion.id] == completion.tokens, "streamed tokens of completion %d differ", int(completion.id));
    check_top_tokens(subject, request, completion, bounds);
  }
  SampleRequest bad = requests[0];
  bad.top = SampleRequest::most_top + 1;
  CHECK_THROWS(subject.engine.submit(bad), "BAD_ARGUMENT");
}

// A cancelled or finished request takes no part in the next step. Tokens are counted when a step is read; its token of
// a step in progress is not counted.
inline void check_early_ends(const DeviceFactory& make_device, const ModelConfig& config) {
  Subject subject(make_device, config);
  const GeneratorCounts& counts = *subject.engine.counts();
  std::map<uint64_t, std::vector<int32_t>> streamed;
  const auto request_of = [&](uint64_t id) {
    SampleRequest request;
    request.id = id, request.prompt = random_tokens(5, uint32_t(id), config.vocabulary_size), request.max_tokens = 40, request.key = {1, uint32_t(id)};
    request.on_token = [&streamed, id](int32_t token) { streamed[id].push_back(token); };
    return request;
  };
  std::vector<Completion> done;
  const auto steps = [&](int count) {
    for (int i = 0; i < count; i++) subject.engine.sample_step(done);
  };
  for (uint64_t id = 0; id < 4; id++) subject.engine.submit(request_of(id));
  steps(10);
  const int64_t before = counts.sampled;
  const std::vector<int32_t> known = streamed[1];
  subject.engine.cancel({0});
  subject.engine.finish({1}, done);
  CHECK(done.size() == 1 && done[0].id == 1 && done[0].stopped && done[0].tokens == known && done[0].log_probs.size() == known.size() &&
        done[0].entropies.size() == known.size());
  steps(6);
  CHECK(counts.sampled == before + 2 * 6, "%d sampled in 6 steps of 2", int(counts.sampled - before));
  subject.engine.finish({0, 1, 77}, done);  // unknown and ended ids are ignored
  CHECK(done.size() == 1 && streamed[0].size() == known.size() && streamed[1] == known);
  run_until_idle(subject, done);
  CHECK(done.size() == 3 && counts.sampled == before + 2 * (40 - int64_t(known.size())));

  // Four pages have room for two sequences: the third is admitted by the next step, which an asynchronous device reads
  // one step later.
  for (const bool finished : {false, true}) {
    const int64_t page_bytes = cache_bytes_per_token(config, subject.engine.device().activation_type()) * PagedCache::page_size;
    Subject small(make_device, config, {.cache_bytes = 4 * page_bytes});
    const GeneratorCounts& of_small = *small.engine.counts();
    for (uint64_t id = 0; id < 3; id++) small.engine.submit(request_of(id));
    for (int i = 0; i < 5; i++) small.engine.sample_step(done);
    const int64_t sampled = of_small.sampled, late = small.engine.device().traits().asynchronous;
    CHECK(sampled == 2 * (5 - late), "%d sampled", int(sampled));
    finished ? small.engine.finish({0}, done) : small.engine.cancel({0});
    for (int i = 0; i < 4; i++) small.engine.sample_step(done);
    CHECK(of_small.sampled == sampled + 2 * 4 - late, "%d sampled in 4 steps", int(of_small.sampled - sampled));
  }
}

}  // namespace gigpo::test
