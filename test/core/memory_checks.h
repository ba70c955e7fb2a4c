// Checks of the memory of an engine on any device: a region used in turns, and plans that match the memory used.
#pragma once
#include "core/memory_plan.h"
#include "test/core/engine_subject.h"

namespace gigpo::test {

// Sampling and training use one region in turns, even in the middle of a completion.
inline void check_shared_region(const DeviceFactory& make_device, const ModelConfig& config) {
  Subject apart(make_device, config), shared(make_device, config, {.region_bytes = 1 << 20});
  const std::vector<TrainingRow> rows = training_rows(apart);
  const double loss = train(apart, rows, policy_loss());
  SampleRequest request;
  request.prompt = random_tokens(40, 1, config.vocabulary_size);
  request.max_tokens = 30;
  std::vector<Completion> wanted, found;
  apart.engine.submit(request);
  while (apart.engine.sampling()) apart.engine.sample_step(wanted);
  shared.engine.submit(request);
  for (int step = 0; shared.engine.sampling(); step++) {
    shared.engine.sample_step(found);
    if (step % 7 == 3) CHECK(train(shared, rows, policy_loss()) == loss);
  }
  CHECK(found.size() == 1 && found[0].tokens == wanted[0].tokens);
  CHECK(shared.gradients() == apart.gradients());
}

// Completion with the maximum memory for its length: it contains every token of the vocabulary.
inline TrainingRow fullest_row(int64_t reply, const ModelConfig& config) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < reply; i++) tokens.push_back(int32_t(i % config.vocabulary_size));
  return step_row({0}, tokens);
}

// The plan equals the memory used, to the byte.
inline void check_plan(const DeviceFactory& make_device, const ModelConfig& config) {
  for (const Recompute level : {Recompute::none, Recompute::norms, Recompute::mlp, Recompute::block}) {
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{4, 8}}) {
      Subject subject(make_device, config, {.adapter = adapter, .recompute = level});
      EngineOptions options;
      options.micro_batch_tokens = 64, options.recompute = level, options.adapter = adapter;
      Device& device = subject.engine.device();
      const MemoryPlan plan = plan_memory(config, options, device.traits(), {.reference = true});
      train(subject, {fullest_row(64, config)}, policy_loss());
      CHECK(size_t(plan.activations) == subject.engine.peak_bytes(), "%d planned, %d used", int(plan.activations),
            int(subject.engine.peak_bytes()));
      CHECK(plan.gradients == int64_t(subject.gradients().size() * sizeof(float)));
      CHECK(plan.moments == 2 * plan.gradients && plan.total() > plan.weights + 4 * plan.reference);

      // Rows with common prefixes do not make a micro-batch larger.
      std::vector<TrainingRow> alike;
      for (int32_t i = 0; i < 9; i++) alike.push_back(step_row(std::vector<int32_t>(50, 1), std::vector<int32_t>(14, i)));
      train(subject, alike, policy_loss());
      CHECK(size_t(plan.activations) == subject.engine.peak_bytes(), "%d planned, %d used", int(plan.activations),
            int(subject.engine.peak_bytes()));

      options.longest_row = 300;
      Subject longer(make_device, config, {.longest_row = 300, .adapter = adapter, .recompute = level});
      train(longer, {fullest_row(300, config)}, policy_loss());
      const MemoryPlan with = plan_memory(config, options, device.traits(), {.reference = true});
      CHECK(size_t(with.activations) == longer.engine.peak_bytes() && with.activations > 3 * plan.activations, "%d planned, %d used",
            int(with.activations), int(longer.engine.peak_bytes()));
      CHECK_THROWS(train(longer, {step_row({0}, std::vector<int32_t>(301, 0))}, policy_loss()), "BAD_ARGUMENT");
      // Shared prompts, and tokens wanted repeatedly, stay within the plan, too.
      std::vector<TrainingRow> rows;
      for (int32_t i = 0; i < 330; i++) {
        rows.push_back(step_row(std::vector<int32_t>(200, 1), std::vector<int32_t>(i % 50 == 0 ? 40 : 1, i % 53)));
      }
      train(longer, rows, policy_loss());
      CHECK(size_t(with.activations) >= longer.engine.peak_bytes(), "%d planned, %d used", int(with.activations),
            int(longer.engine.peak_bytes()));
    }
  }
  // Options that are not set are chosen by the available memory.
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

}  // namespace gigpo::test
