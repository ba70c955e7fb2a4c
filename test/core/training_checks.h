// Checks of training on any device: gradients against finite differences, steps that lower the loss, an adapter against
// its merged weights, and bit-identical results of recomputation.
#pragma once
#include "test/core/engine_subject.h"

namespace gigpo::test {

// Moves every weight tensor along its gradient plus a small random deviation.
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

// Recomputed activations are bit-identical, with an adapter or without.
inline void check_recompute(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter) {
  Subject keeps(make_device, config, {.adapter = adapter});
  const std::vector<TrainingRow> rows = training_rows(keeps);
  const double loss = train(keeps, rows, policy_loss());
  const std::vector<float> wanted = keeps.gradients();
  size_t bytes = keeps.engine.peak_bytes();
  for (const Recompute level : {Recompute::norms, Recompute::mlp, Recompute::block}) {
    Subject subject(make_device, config, {.adapter = adapter, .recompute = level});
    CHECK(train(subject, rows, policy_loss()) == loss);
    CHECK(subject.gradients() == wanted, "recompute level %d", int(level));
    CHECK(subject.engine.peak_bytes() < bytes, "level %d: %d bytes", int(level), int(subject.engine.peak_bytes()));
    bytes = subject.engine.peak_bytes();
  }
}

// The adapter changes the policy, while the model, which is the reference without the adapter, stays the same.
inline void check_adapter(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds, const AdapterConfig& adapter) {
  if (bounds.slope > 0) check_gradient(make_device, config, bounds, adapter);
  check_recompute(make_device, config, adapter);

  Subject plain(make_device, config), subject(make_device, config, {.adapter = adapter});
  const std::vector<TrainingRow> rows = training_rows(plain);
  const auto model = log_probs_of(plain, rows);
  CHECK(log_probs_of(subject, rows) != model, "adapter enabled");

  std::vector<float> zero_b = subject.host;
  for (const Parameter& parameter : subject.engine.transformer().trained()) {
    if (parameter.name.find("lora_A") != std::string::npos) continue;
    const auto place = zero_b.begin() + parameter.offset;
    if (parameter.name.find("lora_B") != std::string::npos) std::fill_n(place, parameter.size(), 0.f);
    for (const Parameter& own : plain.engine.transformer().layout().parameters) {  // parameters trained in full start as copies of the model's
      const bool head = config.tie_embeddings && own.name == "model.embed_tokens.weight" && parameter.name == "base_model.model.lm_head.weight";
      if (head || parameter.name == "base_model.model." + own.name) std::copy_n(plain.host.begin() + own.offset, own.size(), place);
    }
  }
  subject.set_weights(zero_b);
  CHECK(log_probs_of(subject, rows) == model, "B = 0");
  subject.engine.freeze_reference();

  PolicyHeadOptions sft;
  sft.mode = HeadMode::sft;
  const double before = train(subject, rows, sft);
  for (int i = 0; i < bounds.optimizer_steps; i++) {
    subject.engine.actor().optimizer_step({1e-2, 0.9, 0.95, 1e-8, 0.01, 1});
    train(subject, rows, sft);
  }
  CHECK(train(subject, rows, sft) < bounds.learned(before) + 0.1 * before, "%g at first, then %g", before, train(subject, rows, sft));
  CHECK(log_probs_of(subject, rows, 0.8f, Policy::reference) == model, "the reference");

  // Adapter and parameters trained in full: equal to the merged weights W + scale B A.
  Subject merged(make_device, merged_config(config, adapter));
  merged.set_weights(merged_weights(subject.engine.actor()));
  const auto found = log_probs_of(subject, rows), wanted = log_probs_of(merged, rows);
  for (size_t r = 0; r < rows.size(); r++) {
    for (size_t i = 0; i < found[r].size(); i++) {
      CHECK(std::abs(found[r][i] - wanted[r][i]) < bounds.merged, "merged: %g, not %g", found[r][i], wanted[r][i]);
    }
  }
}

// Pairs of various ranks and scales, also none, and parameters that are trained in full.
inline AdapterConfig ragged(const ModelConfig& config, bool tied) {
  AdapterConfig adapter;
  adapter.layers.resize(config.layers);
  for (int64_t l = 0; l < config.layers; l++) {
    for (int p = 0; p < Projection::count; p++) adapter.layers[l][p] = {(l + p) % 4, 1 + 0.25f * float(p / 2)};
  }
  adapter.whole = {"model.embed_tokens.weight", "model.norm.weight", "model.layers.0.input_layernorm.weight"};
  adapter.tied = tied && config.tie_embeddings;
  if (!adapter.tied) adapter.whole.insert("lm_head.weight");
  return adapter;
}

// A policy that only samples keeps no fp32 copy next to the weights used in computation; an optimizer step would need
// it.
inline void check_untrained(const DeviceFactory& make_device, const ModelConfig& config) {
  for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{3, 5}}) {
    Subject subject(make_device, config, {.adapter = adapter, .trained = false, .coarse_weights = true});
    Subject trained(make_device, config, {.adapter = adapter, .coarse_weights = true});
    CHECK(subject.weights() == subject.host, "weights are read back as written");
    const std::vector<TrainingRow> rows = training_rows(trained);
    CHECK(log_probs_of(subject, rows) == log_probs_of(trained, rows));
    CHECK_THROWS(subject.engine.actor().optimizer_step({1e-2, 0.9, 0.95, 1e-8, 0.01, 1}), "BAD_ARGUMENT");
    CHECK(subject.weights() == subject.host);
  }
}

inline void check_micro_batches(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject one(make_device, config, {.micro_batch_tokens = 1}), all(make_device, config, {.micro_batch_tokens = 1 << 20});
  const std::vector<TrainingRow> rows = training_rows(all);
  const double loss = train(all, rows, policy_loss());
  CHECK(std::abs(train(one, rows, policy_loss()) - loss) < bounds.log_prob);
  const double apart = distance(one.gradients(), all.gradients());
  CHECK(apart < bounds.log_prob, "%g", apart);
}

inline void check_training(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject subject(make_device, config);
  const std::vector<TrainingRow> rows = training_rows(subject);
  PolicyHeadOptions sft;
  sft.mode = HeadMode::sft;
  const double before = train(subject, rows, sft);
  const OptimizerOptions options{3e-3, 0.9, 0.95, 1e-8, 0.01, 1};
  for (int i = 0; i < bounds.optimizer_steps; i++) {
    const StepReport report = subject.engine.actor().optimizer_step(options);
    CHECK(!report.skipped && report.gradient_norm > 0);
    train(subject, rows, sft);
  }
  CHECK(train(subject, rows, sft) < bounds.learned(before), "%g at first, then %g", before, train(subject, rows, sft));
  CHECK(subject.engine.actor().steps() == bounds.optimizer_steps);

  subject.cancelled = true;
  CHECK_THROWS(train(subject, rows, sft), "ABORTED");
  const std::vector<float> gradients = subject.gradients();
  CHECK(std::all_of(gradients.begin(), gradients.end(), [](float g) { return g == 0; }));

  std::vector<float> broken = subject.host;
  broken[subject.engine.transformer().layout().final_norm] = NAN;
  subject.set_weights(broken);
  subject.cancelled = false;
  for (const auto& constraint : {std::shared_ptr<TokenMasks>(), small_grammar()}) {
    SampleRequest request;
    request.prompt = {1, 2, 3}, request.max_tokens = 2, request.constraint = constraint;
    std::vector<Completion> done;
    subject.engine.submit(request);
    while (subject.engine.sampling()) subject.engine.sample_step(done);
    CHECK(std::isnan(done[0].log_probs[0]) && done[0].failure.empty(), "a broken model's token has log-probability %g: %s",
          done[0].log_probs[0], done[0].failure.c_str());
  }
  train(subject, rows, sft);
  CHECK(subject.engine.actor().optimizer_step(options).skipped);
  CHECK(subject.engine.actor().steps() == bounds.optimizer_steps);
}

}  // namespace gigpo::test
