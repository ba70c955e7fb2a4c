// Checks of the critic on any device: initialization from the policy, gradient against finite differences, training
// that lowers its loss and leaves the policy unchanged, and rows, recomputation and memory as for the policy.
#pragma once
#include "test/core/engine_checks.h"

namespace gigpo::test {

constexpr double value_clip = 0.5;

// Engine of a policy, and its critic with a nonzero head.
struct CriticSubject : Subject {
  CriticSubject(const DeviceFactory& make_device, const ModelConfig& config, const Setup& setup = {})
      : Subject(make_device, config, setup), critic(engine.critic()) {
    const int64_t head = trained().back().offset;
    given.assign(host.begin(), host.begin() + head);
    const float size = 1.5f / std::sqrt(float(config.hidden_size));  // values of about 1 at any width
    for (int64_t i = 0; i < config.hidden_size; i++) given.push_back(size * uniform(head + i));
    set(given);
  }

  const std::vector<Parameter>& trained() const { return critic.transformer().trained(); }
  void set(const std::vector<float>& values) {
    critic.write(critic.trained_buffer(), 0, values);
  }
  std::vector<float> predict(const std::vector<TrainingRow>& rows) { return critic.predict(FlatBatch(rows), cancelled); }
  ValueReport train(const std::vector<TrainingRow>& rows, double clip = value_clip) {
    critic.clear_gradients();
    return critic.forward_backward(FlatBatch(rows), clip, cancelled);
  }
  std::vector<float> gradients() {
    std::vector<float> result(given.size());
    critic.read(Buffer::gradients, 0, result.data(), int64_t(result.size()));
    return result;
  }

  Critic& critic;
  std::vector<float> given;  // initial trained weights
};

// Old values on both sides of the prediction and of the clip; returns that stay away from every kink of the loss.
inline void add_returns(CriticSubject& subject, std::vector<TrainingRow>& rows) {
  const std::vector<float> values = subject.predict(rows);
  constexpr float moved[] = {-0.9f, -0.3f, 0.f, 0.1f, 0.9f, 0.4f}, missed[] = {-1.3f, 0.6f, 0.3f, -0.7f, 1.1f};
  size_t i = 0;
  for (TrainingRow& row : rows) {
    row.returns.clear(), row.old_values.clear();
    for (int64_t t = 0; t < row.sampled(); t++, i++) {
      row.old_values.push_back(values[i] - moved[i % 6]), row.returns.push_back(values[i] + missed[i % 5]);
    }
  }
}

inline void check_critic_start(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter) {
  Subject subject(make_device, config, {.adapter = adapter});
  Critic& critic = subject.engine.critic();
  CHECK(&critic == &subject.engine.critic());
  const std::vector<Parameter>& trained = critic.transformer().trained();
  CHECK(trained.back().name.ends_with("score.weight") && trained.back().size() == config.hidden_size);
  std::vector<float> weights(critic.transformer().trained_size());
  critic.read(critic.trained_buffer(), 0, weights.data(), int64_t(weights.size()));
  const int64_t head = trained.back().offset;
  CHECK(std::equal(weights.begin(), weights.begin() + head, subject.host.begin()), "all weights except the head equal the policy's");
  CHECK(std::all_of(weights.begin() + head, weights.end(), [](float w) { return w == 0; }));
  const std::vector<TrainingRow> rows = training_rows(subject);
  const std::vector<float> values = critic.predict(FlatBatch(rows), subject.cancelled);
  CHECK(int64_t(values.size()) == TrainingBatch(FlatBatch(rows)).sampled() && std::all_of(values.begin(), values.end(), [](float v) { return v == 0; }));
}

// Values against sums over hidden states; loss and report against their definition in double.
inline void check_value_loss(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  CriticSubject subject(make_device, config);
  std::vector<TrainingRow> rows = training_rows(subject);
  add_returns(subject, rows);
  const std::vector<float> values = subject.predict(rows);
  for (const double clip : {value_clip, double(INFINITY)}) {
    double loss = 0, clipped = 0, mean = 0;
    size_t i = 0;
    for (const TrainingRow& row : rows) {
      for (int64_t t = 0; t < row.sampled(); t++, i++) {
        const double v = values[i], old = row.old_values[t], target = row.returns[t];
        const double bounded = std::min(std::max(v, old - clip), old + clip);
        const double one = (v - target) * (v - target), other = (bounded - target) * (bounded - target);
        loss += 0.5 * std::max(one, other), clipped += other > one, mean += v;
      }
    }
    const ValueReport report = subject.train(rows, clip);
    const double n = double(values.size());
    CHECK(report.tokens == int64_t(values.size()) && (clip < 1 ? clipped > 0 : clipped == 0));
    CHECK(std::abs(report.loss - loss / n) < bounds.log_prob, "%g, not %g", report.loss, loss / n);
    CHECK(std::abs(report.clip_fraction - clipped / n) < 1e-9, "%g, not %g", report.clip_fraction, clipped / n);
    CHECK(std::abs(report.value - mean / n) < bounds.log_prob, "%g, not %g", report.value, mean / n);
  }
  std::vector<TrainingRow> bare = rows;
  for (TrainingRow& row : bare) row.old_values.clear();
  CHECK(subject.train(bare, INFINITY).loss == subject.train(rows, INFINITY).loss, "old values are ignored without a clip");
}

inline void check_critic_gradient(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                                  const AdapterConfig& adapter) {
  CriticSubject subject(make_device, config, {.adapter = adapter});
  std::vector<TrainingRow> rows = training_rows(subject);
  add_returns(subject, rows);
  subject.train(rows);
  const std::vector<float> gradients = subject.gradients();
  for (const Parameter& parameter : subject.trained()) {
    const float* gradient = &gradients[parameter.offset];
    double norm = 0, slope = 0;
    for (int64_t i = 0; i < parameter.size(); i++) norm += double(gradient[i]) * gradient[i];
    norm = std::sqrt(norm);
    CHECK(norm > 1e-5, "%s has no gradient", parameter.name.c_str());
    std::vector<float> direction(parameter.size());
    for (int64_t i = 0; i < parameter.size(); i++) {
      direction[i] = float(gradient[i] / norm + Subject::uniform(parameter.offset + i) / std::sqrt(double(parameter.size())));
      slope += double(direction[i]) * gradient[i];
    }
    const auto along = [&](double step) {
      std::vector<float> moved = subject.given;
      for (int64_t i = 0; i < parameter.size(); i++) moved[parameter.offset + i] += float(step * direction[i]);
      subject.set(moved);
      return subject.train(rows).loss;
    };
    // Richardson extrapolation of two central differences: the remaining fourth-order error is below the rounding of
    // fp32.
    const auto central = [&](double step) { return (along(step) - along(-step)) / (2 * step); };
    const double measured = (4 * central(4e-3) - central(8e-3)) / 3;
    CHECK(std::abs(measured / slope - 1) < bounds.slope, "%s: slope %g, measured %g", parameter.name.c_str(), slope, measured);
  }
}

// Critic with recomputation, with micro-batches, with shared prefixes and one step at a time.
inline void check_critic_rows(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                              const AdapterConfig& adapter) {
  CriticSubject subject(make_device, config, {.micro_batch_tokens = 1 << 20, .adapter = adapter});
  std::vector<TrainingRow> rows = conversations(subject);
  add_returns(subject, rows);
  const std::vector<float> values = subject.predict(rows);
  const ValueReport report = subject.train(rows);
  const std::vector<float> gradients = subject.gradients();
  for (const Recompute level : {Recompute::norms, Recompute::mlp, Recompute::block}) {
    CriticSubject again(make_device, config, {.micro_batch_tokens = 1 << 20, .adapter = adapter, .recompute = level});
    CHECK(again.train(rows).loss == report.loss && again.gradients() == gradients, "recompute level %d", int(level));
  }
  for (const int64_t tokens : {1, 64}) {
    CriticSubject other(make_device, config, {.micro_batch_tokens = tokens, .adapter = adapter});
    const std::vector<TrainingRow> cut = tokens == 1 ? one_by_one(rows) : rows;
    const std::vector<float> found = other.predict(cut);
    for (size_t i = 0; i < values.size(); i++) CHECK(std::abs(found[i] - values[i]) < bounds.log_prob, "%g, not %g", found[i], values[i]);
    CHECK(std::abs(other.train(cut).loss - report.loss) < bounds.log_prob);
    const double apart = distance(other.gradients(), gradients);
    CHECK(apart < bounds.log_prob, "gradients %g apart", apart);
  }
}

// Critic next to the policy, in one region with it and with sampling: all results as if each were alone.
inline void check_critic_training(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                                  const AdapterConfig& adapter) {
  CriticSubject subject(make_device, config, {.region_bytes = 1 << 20, .adapter = adapter});
  std::vector<TrainingRow> rows = training_rows(subject);
  add_returns(subject, rows);
  const auto log_probs = log_probs_of(subject, rows);
  const double policy_loss_before = test::train(subject, rows, policy_loss());
  const std::vector<float> policy_gradients = subject.Subject::gradients();
  SampleRequest request;
  request.prompt = random_tokens(40, 1, config.vocabulary_size), request.max_tokens = 20;
  std::vector<Completion> wanted, found;
  subject.engine.submit(request);
  while (subject.engine.sampling()) subject.engine.sample_step(wanted);

  const double before = subject.train(rows, INFINITY).loss;
  const std::vector<float> first = subject.predict(rows);
  const OptimizerOptions options{1e-2, 0.9, 0.95, 1e-8, 0.01, 1};
  subject.engine.submit(request);
  for (int i = 0; i < bounds.optimizer_steps; i++) {
    subject.train(rows, INFINITY);
    CHECK(!subject.critic.optimizer_step(options).skipped);
    if (subject.engine.sampling()) subject.engine.sample_step(found);
  }
  while (subject.engine.sampling()) subject.engine.sample_step(found);
  CHECK(subject.train(rows, INFINITY).loss < bounds.learned(before), "%g at first, then %g", before, subject.train(rows, INFINITY).loss);
  CHECK(subject.predict(rows) != first && subject.critic.steps() == bounds.optimizer_steps && subject.engine.actor().steps() == 0);
  CHECK(found.size() == 1 && found[0].tokens == wanted[0].tokens, "sampling between critic updates");
  CHECK(log_probs_of(subject, rows) == log_probs, "the policy is unchanged");
  CHECK(test::train(subject, rows, policy_loss()) == policy_loss_before && subject.Subject::gradients() == policy_gradients);

  subject.cancelled = true;
  CHECK_THROWS(subject.critic.forward_backward(FlatBatch(rows), value_clip, subject.cancelled), "ABORTED");
  CHECK_THROWS(subject.predict(rows), "ABORTED");
  const std::vector<float> gradients = subject.gradients();
  CHECK(std::all_of(gradients.begin(), gradients.end(), [](float g) { return g == 0; }));
  float one = 0;
  CHECK_THROWS(subject.critic.read(adapter ? Buffer::weights : Buffer::adapter, 0, &one, 1), "BAD_ARGUMENT");
}

// With an adapter, the merged weights are a separate critic with the same values.
inline void check_merged_critic(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  CriticSubject subject(make_device, config, {.adapter = {3, 5}}), plain(make_device, config);
  const std::vector<TrainingRow> rows = training_rows(subject);
  plain.set(merged_weights(subject.critic));
  const std::vector<float> found = subject.predict(rows), wanted = plain.predict(rows);
  for (size_t i = 0; i < found.size(); i++) CHECK(std::abs(found[i] - wanted[i]) < bounds.merged, "merged: %g, not %g", found[i], wanted[i]);
}

// Planned memory equals the memory used, and the activations of the critic need no more than the policy's.
inline void check_critic_plan(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter) {
  CriticSubject subject(make_device, config, {.adapter = adapter});
  EngineOptions options;
  options.micro_batch_tokens = 64, options.adapter = adapter;
  const DeviceTraits traits = subject.engine.device().traits();
  const MemoryPlan without = plan_memory(config, options, traits, {}), with = plan_memory(config, options, traits, {.critic = true});
  CHECK(with.activations == without.activations && without.critic == 0);
  CHECK(with.total() == without.total() + with.critic + with.packed - without.packed);
  const int64_t numbers = subject.critic.transformer().trained_size(), copies = traits.activation_type == Type::bf16 ? 6 : 4;
  const int64_t tables = int64_t(config.rotary.size()) * config.max_positions * config.head_size * 4;
  CHECK(with.critic == numbers * (copies + 12) + tables, "%d planned", int(with.critic));
  CHECK(describe(with).find(", critic ") != std::string::npos);
  CHECK(plan_memory(config, options, traits, {.trained = false, .critic = true}).critic == 0);
  test::train(subject, {fullest_row(64, config)}, policy_loss());
  subject.train({fullest_row(64, config)});
  CHECK(size_t(with.activations) == subject.engine.peak_bytes());
  CHECK_THROWS(fit_options(config, options, traits, {.critic = true}, with.total() - with.critic / 2), "OUT_OF_MEMORY");
}

inline void check_critic(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  part([&] { check_value_loss(make_device, config, bounds); });
  part([&] { check_merged_critic(make_device, config, bounds); });
  for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{3, 5}}) {
    part([&] { check_critic_start(make_device, config, adapter); });
    if (bounds.slope > 0) part([&] { check_critic_gradient(make_device, config, bounds, adapter); });
    part([&] { check_critic_rows(make_device, config, bounds, adapter); });
    part([&] { check_critic_training(make_device, config, bounds, adapter); });
    part([&] { check_critic_plan(make_device, config, adapter); });
  }
}

}  // namespace gigpo::test
