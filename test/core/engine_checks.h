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
#include "test/core/training_rows.h"

namespace gigpo::test {

using DeviceFactory = std::function<std::unique_ptr<Device>()>;

// What the device's number format allows.
struct Bounds {
  double slope;     // relative error of a directional derivative; 0: too coarse to be measured by differences
  double log_prob;  // absolute difference between sampling and scoring
  int64_t longest_prompt = 1500, step_tokens = 1024;  // less where it takes too long
  int optimizer_steps = 20;                           // as well
  double merged = log_prob;                           // between an adapter and the weights that it is merged into, rounded again

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
  int64_t micro_batch_tokens = 64, longest_row = 0, cache_bytes = 1 << 20, step_tokens = 1024, region_bytes = 0;
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  Type moments = Type::f32;
  bool share_prefixes = true;
  double deviation = 0.3;          // of the initial weights
  bool coarse_weights = false;     // they are numbers that bf16 can hold
};

// One model with its weights on a device.
struct Subject {
  Subject(const DeviceFactory& make_device, const ModelConfig& config, const Setup& setup = {})
      : engine(make_device(), config,
               {.micro_batch_tokens = setup.micro_batch_tokens, .longest_row = setup.longest_row, .cache_bytes = setup.cache_bytes,
                .step_tokens = setup.step_tokens, .region_bytes = setup.region_bytes, .adapter = setup.adapter,
                .recompute = setup.recompute, .moments = setup.moments, .share_prefixes = setup.share_prefixes}),
        host(engine.transformer().layout().size) {
    initialize(config, engine.transformer().layout(), setup.deviation, {3, 4}, std::atomic<bool>(false), host.data());
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

// Of each row.
inline std::vector<std::vector<float>> log_probs_of(Subject& subject, const PolicyTensors& weights, const std::vector<TrainingRow>& rows,
                                                    float temperature = 0.8f) {
  const Scores scores = subject.trainer.scores(weights, FlatBatch(rows), temperature, subject.cancelled);
  std::vector<std::vector<float>> result;
  auto next = scores.log_probs.begin();
  for (const TrainingRow& row : rows) {
    result.emplace_back(next, next + row.sampled());
    next += row.sampled();
  }
  return result;
}

// Ratios that keep their distance from every bound of the clip.
inline void add_log_probs(Subject& subject, std::vector<TrainingRow>& rows) {
  const auto log_probs = log_probs_of(subject, subject.engine.policy(), rows);
  constexpr float log_ratios[] = {-0.9f, -0.4f, -0.1f, 0.f, 0.1f, 0.4f, 0.9f, 1.4f};
  for (size_t r = 0; r < rows.size(); r++) {
    for (int64_t i = 0; i < rows[r].sampled(); i++) {
      rows[r].old_log_probs.push_back(log_probs[r][i] - log_ratios[size_t(3 * r + i) % 8]);
      rows[r].reference_log_probs.push_back(log_probs[r][i] + 0.5f * Subject::uniform(i));
    }
  }
}

// Rows of several lengths, two of them with one prompt.
inline std::vector<TrainingRow> training_rows(Subject& subject) {
  const int64_t vocabulary = subject.engine.transformer().config().vocabulary_size;
  std::vector<TrainingRow> rows;
  for (const auto& [prompt, reply] : {std::pair{1, 1}, {5, 9}, {30, 20}, {5, 3}, {70, 40}}) {
    rows.push_back(step_row(random_tokens(prompt, uint32_t(prompt), vocabulary), random_tokens(reply, uint32_t(100 + reply), vocabulary),
                            1.5f - float(rows.size())));
  }
  add_log_probs(subject, rows);
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

inline LossReport train(Subject& subject, const std::vector<TrainingRow>& rows, const TrainingLoss& loss) {
  subject.trainer.clear_gradients();
  return subject.trainer.forward_backward(subject.engine.policy(), FlatBatch(rows), loss, subject.cancelled);
}

inline double train(Subject& subject, const std::vector<TrainingRow>& rows, const PolicyHeadOptions& options) {
  return train(subject, rows, {.head = options, .aggregation = Aggregation::sequence_mean_token_mean}).loss;
}

// |found - wanted| / |wanted|
inline double distance(const std::vector<float>& found, const std::vector<float>& wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += std::pow(double(found[i]) - wanted[i], 2), norm += double(wanted[i]) * wanted[i];
  }
  return std::sqrt(difference / norm);
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
  const auto scores = [&](Subject& of, const PolicyTensors& weights) { return log_probs_of(of, weights, rows); };
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
    subject.engine.actor().read_merged(int64_t(p), 0, values.data(), cut);
    subject.engine.actor().read_merged(int64_t(p), cut, values.data() + cut, parameters[p].size() - cut);
    merged.insert(merged.end(), values.begin(), values.end());
  }
  plain.set_weights(merged);
  const auto found = scores(subject, subject.engine.policy()), wanted = scores(plain, plain.engine.policy());
  for (size_t r = 0; r < rows.size(); r++) {
    for (size_t i = 0; i < found[r].size(); i++) {
      CHECK(std::abs(found[r][i] - wanted[r][i]) < bounds.merged, "merged: %g, not %g", found[r][i], wanted[r][i]);
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

// A reply that asks for as much as its length can: every token of the vocabulary occurs in it.
inline TrainingRow fullest_row(int64_t reply, const ModelConfig& config) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < reply; i++) tokens.push_back(int32_t(i % config.vocabulary_size));
  return step_row({0}, tokens);
}

// The plan says what is then taken, to the byte.
inline void check_plan(const DeviceFactory& make_device, const ModelConfig& config) {
  for (const Recompute level : {Recompute::none, Recompute::norms, Recompute::mlp, Recompute::block}) {
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{4, 8}}) {
      Subject subject(make_device, config, {.adapter = adapter, .recompute = level});
      EngineOptions options;
      options.micro_batch_tokens = 64, options.recompute = level, options.adapter = adapter;
      Device& device = subject.engine.device();
      const MemoryPlan plan = plan_memory(config, options, device.traits(), {.reference = true});
      train(subject, {fullest_row(64, config)}, policy_loss());
      CHECK(size_t(plan.activations) == subject.trainer.peak_bytes(), "%d planned, %d taken", int(plan.activations),
            int(subject.trainer.peak_bytes()));
      CHECK(plan.gradients == int64_t(subject.trainer.gradients().size() * sizeof(float)));
      CHECK(plan.moments == 2 * plan.gradients && plan.total() > plan.weights + 4 * plan.reference);

      // So do rows that begin alike, for whom no micro-batch is made larger.
      std::vector<TrainingRow> alike;
      for (int32_t i = 0; i < 9; i++) alike.push_back(step_row(std::vector<int32_t>(50, 1), std::vector<int32_t>(14, i)));
      train(subject, alike, policy_loss());
      CHECK(size_t(plan.activations) == subject.trainer.peak_bytes(), "%d planned, %d taken", int(plan.activations),
            int(subject.trainer.peak_bytes()));

      options.longest_row = 300;
      Subject longer(make_device, config, {.longest_row = 300, .adapter = adapter, .recompute = level});
      train(longer, {fullest_row(300, config)}, policy_loss());
      const MemoryPlan with = plan_memory(config, options, device.traits(), {.reference = true});
      CHECK(size_t(with.activations) == longer.trainer.peak_bytes() && with.activations > 3 * plan.activations, "%d planned, %d taken",
            int(with.activations), int(longer.trainer.peak_bytes()));
      CHECK_THROWS(train(longer, {step_row({0}, std::vector<int32_t>(301, 0))}, policy_loss()), "BAD_ARGUMENT");
      // Prompts that are shared, and single tokens asked for again and again, stay within it too.
      std::vector<TrainingRow> rows;
      for (int32_t i = 0; i < 330; i++) {
        rows.push_back(step_row(std::vector<int32_t>(200, 1), std::vector<int32_t>(i % 50 == 0 ? 40 : 1, i % 53)));
      }
      train(longer, rows, policy_loss());
      CHECK(size_t(with.activations) >= longer.trainer.peak_bytes(), "%d planned, %d taken", int(with.activations),
            int(longer.trainer.peak_bytes()));
    }
  }
  // What is left decides where nobody told.
  EngineOptions options;
  options.micro_batch_tokens = 64, options.step_tokens = 64, options.cache_bytes = 1 << 16;
  const auto device = make_device();
  const auto fitted = [&](int64_t available) { return fit_options(config, options, device->traits(), {}, available); };
  const int64_t least = fitted(INT64_MAX / 2).plan.total();
  CHECK(fitted(INT64_MAX / 2).plan.longest_row == (device->traits().one_region ? 64 : config.max_positions));
  CHECK(fitted(least).plan.longest_row == 64 && fitted(least).plan.total() == least);
  options.longest_row = 500;
  CHECK(fitted(INT64_MAX / 2).plan.longest_row == 500 && fitted(INT64_MAX / 2).plan.activations > fitted(INT64_MAX / 2).plan.weights / 1000);
  CHECK_THROWS(fitted(least), "OUT_OF_MEMORY");
}

inline void check_micro_batches(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject one(make_device, config, {.micro_batch_tokens = 1}), all(make_device, config, {.micro_batch_tokens = 1 << 20});
  const std::vector<TrainingRow> rows = training_rows(all);
  const double loss = train(all, rows, policy_loss());
  CHECK(std::abs(train(one, rows, policy_loss()) - loss) < bounds.log_prob);
  const double apart = distance(one.gradients(), all.gradients());
  CHECK(apart < bounds.log_prob, "%g", apart);
}

// Conversations of a group: they begin alike, part at a sampled token or at what was answered, and go on.
inline std::vector<TrainingRow> conversations(Subject& subject) {
  const int64_t vocabulary = subject.engine.transformer().config().vocabulary_size;
  std::vector<TrainingRow> rows;
  for (uint32_t member = 0; member < 7; member++) {
    TrainingRow row;
    const auto add = [&](int64_t count, uint32_t stream, bool sampled) {
      const std::vector<int32_t> tokens = random_tokens(count, stream, vocabulary);
      if (sampled) row.spans.push_back({int64_t(row.tokens.size()), count});
      row.tokens.insert(row.tokens.end(), tokens.begin(), tokens.end());
    };
    add(20, 1, false);
    for (uint32_t turn = 0; turn < 2 + member % 3; turn++) {
      const uint32_t own = turn < member / 2 ? 0 : 10 * member;  // up to then as others
      add(5 + 3 * turn, 100 + turn + own, true);
      if (turn % 2 == 0) add(4, 200 + turn + own, false);  // sometimes a span follows a span
    }
    if (member == 3) add(9, 300, false);  // and nobody asks for what comes last
    for (int64_t i = 0; i < row.sampled(); i++) row.advantages.push_back(Subject::uniform(1000 * member + i));
    rows.push_back(std::move(row));
  }
  rows.push_back(rows[4]);  // one twice
  rows.push_back(step_row(random_tokens(20, 1, vocabulary), random_tokens(6, 9, vocabulary), 0.5f));
  add_log_probs(subject, rows);
  return rows;
}

// The same, a row a span.
inline std::vector<TrainingRow> one_by_one(const std::vector<TrainingRow>& rows) {
  std::vector<TrainingRow> result;
  for (const TrainingRow& row : rows) {
    int64_t first = 0;
    for (const auto& [begin, count] : row.spans) {
      const auto part = [&, first = first, count = count](const std::vector<float>& column) {
        return column.empty() ? column : std::vector<float>(column.begin() + first, column.begin() + first + count);
      };
      TrainingRow step;
      step.tokens.assign(row.tokens.begin(), row.tokens.begin() + begin + count);
      step.spans = {{begin, count}};
      step.advantages = part(row.advantages), step.old_log_probs = part(row.old_log_probs);
      step.reference_log_probs = part(row.reference_log_probs), step.gradients = part(row.gradients);
      step.entropy_gradients = part(row.entropy_gradients);
      step.returns = part(row.returns), step.old_values = part(row.old_values);
      result.push_back(std::move(step));
      first += count;
    }
  }
  return result;
}

// Rows of many spans score and train as their steps do one by one, however they are cut into micro-batches.
inline void check_many_spans(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                             const AdapterConfig& adapter = {}) {
  const auto flat = [](const std::vector<std::vector<float>>& parts) {
    std::vector<float> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  Subject apart(make_device, config, {.adapter = adapter, .share_prefixes = false});
  std::vector<TrainingRow> rows = conversations(apart);
  const std::vector<int64_t> sizes = bounds.optimizer_steps < 20 ? std::vector<int64_t>{64} : std::vector<int64_t>{1, 64, 1 << 20};
  for (const int64_t micro_batch_tokens : sizes) {
    Subject together(make_device, config, {.micro_batch_tokens = micro_batch_tokens, .adapter = adapter});
    const std::vector<float> found = flat(log_probs_of(together, together.engine.policy(), rows));
    const std::vector<float> wanted = flat(log_probs_of(apart, apart.engine.policy(), one_by_one(rows)));
    for (size_t i = 0; i < wanted.size(); i++) CHECK(std::abs(found[i] - wanted[i]) < bounds.log_prob, "%g, not %g", found[i], wanted[i]);
    const auto check = [&](const TrainingLoss& loss, const char* what) {
      const LossReport one = train(together, rows, loss), other = train(apart, one_by_one(rows), loss);
      CHECK(one.tokens == other.tokens && std::abs(one.loss - other.loss) < bounds.log_prob * std::max(1.0, std::abs(other.loss)),
            "%s: %g, not %g", what, one.loss, other.loss);
      // A sequence's ratio, the mean of ratios that keep their distance from the clip's bounds, may be nearer to one than rounding.
      const double bound = loss.ratio == RatioLevel::sequence ? 2 * bounds.log_prob : bounds.log_prob;
      const double difference = distance(together.gradients(), apart.gradients());
      CHECK(difference < bound, "%s: gradients %g apart", what, difference);
    };
    check({.head = policy_loss()}, "token mean");
    check({.head = policy_loss(), .aggregation = Aggregation::sequence_mean_token_mean}, "sequence mean");
    check({.head = policy_loss(), .ratio = RatioLevel::sequence}, "one ratio a sequence");
    check({.head = {.mode = HeadMode::clone}}, "cloning");
    for (TrainingRow& row : rows) {
      for (int64_t i = 0; i < row.sampled(); i++) {
        row.gradients.push_back(Subject::uniform(500 + i)), row.entropy_gradients.push_back(0.3f * Subject::uniform(900 + i));
      }
    }
    check({.head = {.mode = HeadMode::linear, .has_entropy_gradient = true}}, "linear");
    for (TrainingRow& row : rows) row.gradients.clear(), row.entropy_gradients.clear();
  }
}

// Conversations, their steps one by one, and steps whose prompts begin like others: what they share at any depth is computed once, in
// micro-batches of any size, and nobody notices but by the counts.
inline void check_shared_prefixes(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject apart(make_device, config, {.share_prefixes = false});
  std::vector<TrainingRow> rows = conversations(apart);
  int64_t longest = 0, all = 0;
  for (TrainingRow& step : one_by_one(rows)) rows.push_back(std::move(step));
  for (const TrainingRow& row : rows) {
    const auto& [begin, count] = row.spans.back();
    longest = std::max(longest, begin + count - 1), all += begin + count - 1;
  }
  const auto wanted = log_probs_of(apart, apart.engine.policy(), rows);
  const LossReport separate = train(apart, rows, {.head = policy_loss()});
  CHECK(separate.passed.computed == all && separate.passed.reused == 0, "%d of %d computed", int(separate.passed.computed), int(all));
  int64_t before = all;
  for (const int64_t size : {int64_t{64}, 2 * longest, int64_t{1} << 20}) {
    Subject together(make_device, config, {.micro_batch_tokens = size});
    const auto found = log_probs_of(together, together.engine.policy(), rows);
    for (size_t r = 0; r < rows.size(); r++) {
      for (size_t i = 0; i < wanted[r].size(); i++) {
        CHECK(std::abs(found[r][i] - wanted[r][i]) < bounds.log_prob, "row %d: %g, not %g", int(r), found[r][i], wanted[r][i]);
      }
    }
    const LossReport report = train(together, rows, {.head = policy_loss()});
    CHECK(report.tokens == separate.tokens && std::abs(report.loss - separate.loss) < bounds.log_prob * std::max(1.0, std::abs(separate.loss)));
    const double difference = distance(together.gradients(), apart.gradients());
    CHECK(difference < bounds.log_prob, "gradients %g apart", difference);
    CHECK(report.passed.computed + report.passed.reused == all && report.passed.computed <= before, "%d computed with %d at once",
          int(report.passed.computed), int(size));
    before = report.passed.computed;
  }
  CHECK(5 * before < 2 * all, "%d of %d computed", int(before), int(all));
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

  for (size_t i = 0; i < requests.size(); i++) {
    const TrainingRow row = step_row(requests[i].prompt, alone[i].tokens);
    const float temperature = requests[i].temperature == 0 ? 1 : requests[i].temperature;
    const auto log_probs = log_probs_of(subject, subject.engine.policy(), {row}, temperature);
    for (int64_t t = 0; t < row.sampled(); t++) {
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
  std::unordered_set<uint64_t> ids;
  for (const SampleRequest& request : requests) ids.insert(request.id);
  small.generator.cancel(ids);
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
  check_many_spans(make_device, config, bounds);
  check_many_spans(make_device, config, bounds, {3, 5});
  check_shared_prefixes(make_device, config, bounds);
  check_training(make_device, config, bounds);
  check_generation(make_device, config, bounds);
  check_recompute(make_device, config, {});
  check_adapter(make_device, config, bounds);
  check_shared_region(make_device, config);
  check_plan(make_device, config);
}

}  // namespace gigpo::test
