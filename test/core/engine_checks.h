// The engine on any device, on tiny random models: gradients against differences, training that lowers its loss, and
// completions that depend on their own request alone. test/core/engine_test.cpp runs it on the CPU; a program for another
// device passes that one's factory.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/bf16.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/initialize.h"
#include "core/memory_plan.h"
#include "test/core/check.h"

namespace gigpo::test {

using DeviceFactory = std::function<std::unique_ptr<Device>()>;

// What the device's number format allows.
struct Bounds {
  double slope;     // relative error of a directional derivative; 0: too coarse to be measured by differences
  double log_prob;  // absolute difference between sampling and scoring
  int64_t longest_prompt = 1500, step_tokens = 1024;  // less where it takes too long
  int optimizer_steps = 20;                           // as well

  // What such a training must have made of a loss.
  double learned(double before) const { return before * (optimizer_steps < 20 ? 0.95 : 0.7); }
};

inline ModelConfig tiny_model(bool biases_and_tied, int64_t head_size = 8) {
  ModelConfig c{};
  c.vocabulary_size = 53, c.hidden_size = 24, c.intermediate_size = 40, c.layers = 2;
  c.heads = 4, c.key_value_heads = 2, c.head_size = head_size, c.max_positions = 2048;
  c.rms_norm_epsilon = 1e-5, c.rope_theta = 1000;
  c.tie_embeddings = c.query_key_value_bias = biases_and_tied;
  c.query_key_norm = !biases_and_tied;
  return c;
}

// How a subject differs from the plainest.
struct Setup {
  int64_t micro_batch_tokens = 64, cache_bytes = 1 << 20, step_tokens = 1024, region_bytes = 0;
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  Type moments = Type::f32;
  double deviation = 0.3;          // of the initial weights
  bool coarse_weights = false;     // they are numbers that bf16 can hold
};

// One model with its weights on a device.
struct Subject {
  Subject(const DeviceFactory& make_device, const ModelConfig& config, const Setup& setup = {})
      : engine(make_device(), config,
               {setup.micro_batch_tokens, setup.cache_bytes, setup.step_tokens, setup.region_bytes, setup.adapter, setup.recompute,
                false, setup.moments}),
        host(engine.transformer().layout().size) {
    initialize(config, engine.transformer().layout(), setup.deviation, {3, 4}, host.data());
    for (const Parameter& parameter : engine.transformer().layout().parameters) {  // norms and biases that show
      if (parameter.shape.size() > 1) continue;
      for (int64_t i = 0; i < parameter.size(); i++) host[parameter.offset + i] += 0.2f * uniform(parameter.offset + i);
    }
    const auto round = [&] {
      for (float& value : host) value = setup.coarse_weights ? from_bf16(to_bf16(value)) : value;
    };
    round();
    engine.model().write(0, host.data(), int64_t(host.size()));
    if (setup.adapter) {
      host.resize(engine.transformer().trained_size());
      for (size_t i = 0; i < host.size(); i++) host[i] = float(setup.deviation) * uniform(int64_t(i) + 7777);
      round();
      engine.adapter().write(0, host.data(), int64_t(host.size()));
    }
    engine.weights_changed();
  }

  static float uniform(int64_t i) { return 2 * open_uniform(philox({8, 8}, uint32_t(i), 0, 0, 0).word[0]) - 1; }

  // Of what is trained.
  void set_weights(const std::vector<float>& values) {
    engine.trained().write(0, values.data(), int64_t(values.size()));
    engine.weights_changed();
  }
  std::vector<float> weights() { return read(engine.trained()); }
  std::vector<float> gradients() { return read(engine.trainer().gradients()); }

  template <class Buffer>
  std::vector<float> read(const Buffer& buffer) {
    std::vector<float> result(host.size());
    buffer.read(0, result.data(), int64_t(result.size()));
    return result;
  }

  Engine engine;
  Trainer& trainer = engine.trainer();
  Generator& generator = engine.generator();
  std::vector<float> host;  // what is trained, at first
  std::atomic<bool> cancelled = false;
};

inline std::vector<int32_t> random_tokens(int64_t count, uint32_t stream, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; i++) {
    tokens.push_back(int32_t(philox({1, 2}, uint32_t(i), stream, 0, 0).word[0] % uint32_t(vocabulary)));
  }
  return tokens;
}

// Rows of several lengths, two of them with one prompt, whose ratios keep their distance from every bound of the clip.
inline std::vector<TrainingRow> training_rows(Subject& subject) {
  std::vector<TrainingRow> rows;
  for (const auto& [prompt, reply] : {std::pair{1, 1}, {5, 9}, {30, 20}, {5, 3}, {70, 40}}) {
    TrainingRow row;
    row.tokens = random_tokens(prompt, uint32_t(prompt), subject.engine.transformer().config().vocabulary_size);
    for (const int32_t token : random_tokens(reply, uint32_t(100 + reply), subject.engine.transformer().config().vocabulary_size)) {
      row.tokens.push_back(token);
    }
    row.reply = reply;
    row.advantage = 1.5f - float(rows.size());
    rows.push_back(std::move(row));
  }
  const auto log_probs = subject.trainer.log_probs(subject.engine.policy(), rows, 0.8f, subject.cancelled);
  constexpr float log_ratios[] = {-0.9f, -0.4f, -0.1f, 0.f, 0.1f, 0.4f, 0.9f, 1.4f};
  for (size_t r = 0; r < rows.size(); r++) {
    for (int64_t i = 0; i < rows[r].reply; i++) {
      rows[r].old_log_probs.push_back(log_probs[r][i] - log_ratios[size_t(3 * r + i) % 8]);
      rows[r].reference_log_probs.push_back(log_probs[r][i] + 0.5f * Subject::uniform(i));
    }
  }
  return rows;
}

inline PolicyHeadOptions policy_loss() {
  PolicyHeadOptions options;
  options.temperature = 0.8;
  options.entropy_weight = 0.05;
  options.has_reference = true;
  options.loss.kl_weight = 0.1;
  return options;
}

inline double train(Subject& subject, const std::vector<TrainingRow>& rows, const PolicyHeadOptions& options) {
  subject.trainer.clear_gradients();
  return subject.trainer
      .forward_backward(subject.engine.policy(), rows, options, Aggregation::sequence_mean_token_mean, false, subject.cancelled)
      .loss;
}

// Every weight tensor moved along its gradient, a little askew.
inline void check_gradient(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                           const AdapterConfig& adapter = {}) {
  Subject subject(make_device, config, {.adapter = adapter});
  const std::vector<TrainingRow> rows = training_rows(subject);
  train(subject, rows, policy_loss());
  const std::vector<float> gradients = subject.gradients();
  for (const Parameter& parameter : subject.engine.transformer().trained()) {
    const float* gradient = &gradients[parameter.offset];
    double norm = 0, slope = 0, sides[2];
    for (int64_t i = 0; i < parameter.size(); i++) norm += double(gradient[i]) * gradient[i];
    norm = std::sqrt(norm);
    CHECK(norm > 1e-4, "%s has no gradient", parameter.name.c_str());
    std::vector<float> direction(parameter.size());
    const double noise = 1 / std::sqrt(double(parameter.size()));
    for (int64_t i = 0; i < parameter.size(); i++) {
      direction[i] = float(gradient[i] / norm + noise * Subject::uniform(i));
      slope += double(direction[i]) * gradient[i];
    }
    constexpr double step = 1e-3;
    for (const int side : {0, 1}) {
      std::vector<float> moved = subject.host;
      for (int64_t i = 0; i < parameter.size(); i++) {
        moved[parameter.offset + i] += float(side == 0 ? step : -step) * direction[i];
      }
      subject.set_weights(moved);
      sides[side] = train(subject, rows, policy_loss());
    }
    const double measured = (sides[0] - sides[1]) / (2 * step);
    CHECK(std::abs(measured / slope - 1) < bounds.slope, "%s: slope %g, measured %g", parameter.name.c_str(), slope,
          measured);
  }
}

// What is computed again is the same to the bit, with an adapter or without.
inline void check_recompute(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter) {
  Subject keeps(make_device, config, {.adapter = adapter});
  const std::vector<TrainingRow> rows = training_rows(keeps);
  const double loss = train(keeps, rows, policy_loss());
  const std::vector<float> wanted = keeps.gradients();
  size_t bytes = keeps.trainer.peak_bytes();
  for (const Recompute level : {Recompute::norms, Recompute::mlp, Recompute::block}) {
    Subject subject(make_device, config, {.adapter = adapter, .recompute = level});
    CHECK(train(subject, rows, policy_loss()) == loss);
    CHECK(subject.gradients() == wanted, "recompute level %d", int(level));
    CHECK(subject.trainer.peak_bytes() < bytes, "level %d: %d bytes", int(level), int(subject.trainer.peak_bytes()));
    bytes = subject.trainer.peak_bytes();
  }
}

// The adapter moves the policy away from the model, which stays what it was: the reference, when it is switched off.
inline void check_adapter(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  const AdapterConfig adapter{3, 5};
  if (bounds.slope > 0) check_gradient(make_device, config, bounds, adapter);
  check_recompute(make_device, config, adapter);

  Subject plain(make_device, config), subject(make_device, config, {.adapter = adapter});
  const std::vector<TrainingRow> rows = training_rows(plain);
  const auto scores = [&](Subject& of, const PolicyTensors& weights) {
    return of.trainer.log_probs(weights, rows, 0.8f, of.cancelled);
  };
  const auto model = scores(plain, plain.engine.policy());
  CHECK(scores(subject, {subject.engine.model().values(), {}}) == model, "switched off");
  CHECK(scores(subject, subject.engine.policy()) != model, "switched on");

  std::vector<float> zero_b = subject.host;
  for (const Parameter& parameter : subject.engine.transformer().trained()) {
    if (parameter.name.find("lora_B") == std::string::npos) continue;
    std::fill_n(zero_b.begin() + parameter.offset, parameter.size(), 0.f);
  }
  subject.set_weights(zero_b);
  CHECK(scores(subject, subject.engine.policy()) == model, "B = 0");
  subject.engine.freeze_reference();

  PolicyHeadOptions clone;
  clone.mode = HeadMode::clone;
  const double before = train(subject, rows, clone);
  for (int i = 0; i < bounds.optimizer_steps; i++) {
    subject.trainer.optimizer_step(subject.engine.trained(), {1e-2, 0.9, 0.95, 1e-8, 0.01, 1});
    subject.engine.weights_changed();
    train(subject, rows, clone);
  }
  CHECK(train(subject, rows, clone) < bounds.learned(before) + 0.1 * before, "%g at first, then %g", before, train(subject, rows, clone));
  CHECK(scores(subject, subject.engine.reference()) == model, "the reference");

  // Low rank and all: the same as the merged weights W + (alpha / rank) B A.
  std::vector<float> merged;
  const auto& parameters = plain.engine.transformer().layout().parameters;
  for (size_t p = 0; p < parameters.size(); p++) {
    std::vector<float> values(parameters[p].size());
    const int64_t cut = parameters[p].size() / 3;  // in the middle of a row
    subject.engine.read_merged(int64_t(p), 0, values.data(), cut);
    subject.engine.read_merged(int64_t(p), cut, values.data() + cut, parameters[p].size() - cut);
    merged.insert(merged.end(), values.begin(), values.end());
  }
  plain.set_weights(merged);
  const auto found = scores(subject, subject.engine.policy()), wanted = scores(plain, plain.engine.policy());
  for (size_t r = 0; r < rows.size(); r++) {
    for (size_t i = 0; i < found[r].size(); i++) {
      CHECK(std::abs(found[r][i] - wanted[r][i]) < bounds.log_prob, "merged: %g, not %g", found[r][i], wanted[r][i]);
    }
  }
}

// Sampling and training in one region, by turns, even in the middle of a completion.
inline void check_shared_region(const DeviceFactory& make_device, const ModelConfig& config) {
  Subject apart(make_device, config), shared(make_device, config, {.region_bytes = 1 << 20});
  const std::vector<TrainingRow> rows = training_rows(apart);
  const double loss = train(apart, rows, policy_loss());
  SampleRequest request;
  request.prompt = random_tokens(40, 1, config.vocabulary_size);
  request.max_tokens = 30;
  std::vector<Completion> wanted, found;
  apart.generator.submit(request);
  while (!apart.generator.idle()) apart.generator.step(apart.engine.policy(), wanted);
  shared.generator.submit(request);
  for (int step = 0; !shared.generator.idle(); step++) {
    shared.generator.step(shared.engine.policy(), found);
    if (step % 7 == 3) CHECK(train(shared, rows, policy_loss()) == loss);
  }
  CHECK(found.size() == 1 && found[0].tokens == wanted[0].tokens);
  CHECK(shared.gradients() == apart.gradients());
}

// The plan says what is then taken, to the byte.
inline void check_plan(const DeviceFactory& make_device, const ModelConfig& config) {
  for (const Recompute level : {Recompute::none, Recompute::norms, Recompute::mlp, Recompute::block}) {
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{4, 8}}) {
      Subject subject(make_device, config, {.adapter = adapter, .recompute = level});
      EngineOptions options;
      options.micro_batch_tokens = 64, options.recompute = level, options.adapter = adapter;
      Device& device = subject.engine.device();
      const MemoryPlan plan = plan_memory(config, options, device.traits(), true, true);
      TrainingRow row;
      row.tokens.assign(65, 0);
      row.reply = 64;
      train(subject, {row}, policy_loss());
      CHECK(size_t(plan.activations) == subject.trainer.peak_bytes(), "%d planned, %d taken", int(plan.activations),
            int(subject.trainer.peak_bytes()));
      CHECK(plan.gradients == int64_t(subject.trainer.gradients().size() * sizeof(float)));
      CHECK(plan.moments == 2 * plan.gradients && plan.total() > plan.weights + 4 * plan.reference);
    }
  }
}

inline void check_micro_batches(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject one(make_device, config, {.micro_batch_tokens = 1}), all(make_device, config, {.micro_batch_tokens = 1 << 20});
  const std::vector<TrainingRow> rows = training_rows(all);
  const double loss = train(all, rows, policy_loss());
  CHECK(std::abs(train(one, rows, policy_loss()) - loss) < bounds.log_prob);
  const std::vector<float> found = one.gradients(), wanted = all.gradients();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += std::pow(double(found[i]) - wanted[i], 2), norm += double(wanted[i]) * wanted[i];
  }
  CHECK(std::sqrt(difference / norm) < bounds.log_prob, "%g", std::sqrt(difference / norm));
}

inline void check_training(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject subject(make_device, config);
  const std::vector<TrainingRow> rows = training_rows(subject);
  PolicyHeadOptions clone;
  clone.mode = HeadMode::clone;
  const double before = train(subject, rows, clone);
  const OptimizerOptions options{3e-3, 0.9, 0.95, 1e-8, 0.01, 1};
  for (int i = 0; i < bounds.optimizer_steps; i++) {
    const StepReport report = subject.trainer.optimizer_step(subject.engine.trained(), options);
    CHECK(!report.skipped && report.gradient_norm > 0);
    subject.engine.weights_changed();
    train(subject, rows, clone);
  }
  CHECK(train(subject, rows, clone) < bounds.learned(before), "%g at first, then %g", before, train(subject, rows, clone));
  CHECK(subject.trainer.steps == bounds.optimizer_steps);

  subject.cancelled = true;
  CHECK_THROWS(train(subject, rows, clone), "ABORTED");
  const std::vector<float> gradients = subject.gradients();
  CHECK(std::all_of(gradients.begin(), gradients.end(), [](float g) { return g == 0; }));

  std::vector<float> broken = subject.host;
  broken[subject.engine.transformer().layout().final_norm] = NAN;
  subject.set_weights(broken);
  subject.cancelled = false;
  SampleRequest request;
  request.prompt = {1, 2, 3}, request.max_tokens = 2;
  std::vector<Completion> done;
  subject.generator.submit(request);
  while (!subject.generator.idle()) subject.generator.step(subject.engine.policy(), done);
  CHECK(std::isnan(done[0].log_probs[0]), "a broken model's token has log-probability %g", done[0].log_probs[0]);
  train(subject, rows, clone);
  CHECK(subject.trainer.optimizer_step(subject.engine.trained(), options).skipped);
  CHECK(subject.trainer.steps == bounds.optimizer_steps);
}

// Groups with one prompt, and one prompt that takes several steps to read.
inline std::vector<SampleRequest> sample_requests(int64_t vocabulary, int64_t longest) {
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
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

inline void run_until_idle(Subject& subject, std::vector<Completion>& done) {
  while (!subject.generator.idle()) subject.generator.step(subject.engine.policy(), done);
}

inline bool same(const Completion& a, const Completion& b) {
  return a.id == b.id && a.tokens == b.tokens && a.log_probs == b.log_probs && a.stopped == b.stopped;
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
  const std::vector<SampleRequest> requests = sample_requests(config.vocabulary_size, bounds.longest_prompt);
  std::vector<Completion> alone;
  for (const SampleRequest& request : requests) {
    subject.generator.weights_changed();  // nothing is shared
    subject.generator.submit(request);
    run_until_idle(subject, alone);
  }
  CHECK(subject.generator.counts()->reused == 0);

  std::vector<TrainingRow> rows;
  for (size_t i = 0; i < requests.size(); i++) {
    TrainingRow row;
    row.tokens = requests[i].prompt;
    row.tokens.insert(row.tokens.end(), alone[i].tokens.begin(), alone[i].tokens.end());
    row.reply = int64_t(alone[i].tokens.size());
    const float temperature = requests[i].temperature == 0 ? 1 : requests[i].temperature;
    const auto log_probs = subject.trainer.log_probs(subject.engine.policy(), {row}, temperature, subject.cancelled);
    for (int64_t t = 0; t < row.reply; t++) {
      CHECK(std::abs(log_probs[0][t] - alone[i].log_probs[t]) < bounds.log_prob, "completion %d, token %d: %g, not %g",
            int(i), int(t), alone[i].log_probs[t], log_probs[0][t]);
    }
  }

  const auto run_all = [&](Subject& with, const char* what) {
    std::vector<Completion> done;
    for (const SampleRequest& request : requests) with.generator.submit(request);
    run_until_idle(with, done);
    expect_same(std::move(done), alone, what);
  };
  subject.generator.weights_changed();
  run_all(subject, "together");
  CHECK(subject.generator.counts()->reused > 0);
  run_all(subject, "again, from the cache");

  // Room for the longest and no more: the others take turns.
  const int64_t page_bytes = 2 * config.layers * config.key_value_columns() * PagedCache::page_size *
                             bytes_of(subject.engine.device().activation_type());
  const int64_t few_pages = (bounds.longest_prompt + 36) / PagedCache::page_size;
  Subject small(make_device, config, {.cache_bytes = few_pages * page_bytes, .step_tokens = bounds.step_tokens});
  run_all(small, "with a small cache");
  CHECK(small.generator.counts()->preempted > 0);

  // Cancelling, and abandoning a step, free what was taken and leave nothing wrong behind.
  std::vector<Completion> done;
  for (const SampleRequest& request : requests) small.generator.submit(request);
  for (int i = 0; i < 3; i++) small.generator.step(small.engine.policy(), done);
  for (const SampleRequest& request : requests) small.generator.cancel(request.id);
  CHECK(small.generator.idle());
  run_all(small, "after cancelling");
  for (const SampleRequest& request : requests) small.generator.submit(request);
  for (int i = 0; i < 3; i++) small.generator.step(small.engine.policy(), done);
  small.generator.abandon();
  CHECK(small.generator.idle());
  run_all(small, "after abandoning");

  SampleRequest bad = requests[0];
  bad.prompt.clear();
  CHECK_THROWS(subject.generator.submit(bad), "BAD_ARGUMENT");
  bad.prompt.assign(config.max_positions, 1);
  CHECK_THROWS(subject.generator.submit(bad), "BAD_ARGUMENT");
}

inline void check_engine(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  if (bounds.slope > 0) check_gradient(make_device, config, bounds);
  check_micro_batches(make_device, config, bounds);
  check_training(make_device, config, bounds);
  check_generation(make_device, config, bounds);
  check_recompute(make_device, config, {});
  check_adapter(make_device, config, bounds);
  check_shared_region(make_device, config);
  check_plan(make_device, config);
}

}  // namespace gigpo::test
