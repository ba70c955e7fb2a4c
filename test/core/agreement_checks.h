// Comparison of a device with the CPU in fp32, from the same weights: log-probabilities, values and gradients.
#pragma once
#include "test/core/critic_checks.h"
#include "test/core/engine_checks.h"

namespace gigpo::test {

inline double cosine(const float* a, const float* b, int64_t count) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < count; i++) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

// Model that is large enough for rounding errors to average out as in a real model.
inline ModelConfig small_model(bool biases_and_tied, int64_t head_size) {
  ModelConfig c = tiny_model(biases_and_tied, head_size);
  c.vocabulary_size = 301, c.hidden_size = 192, c.intermediate_size = 320;
  return c;
}

inline ModelConfig small_gemma_model(int64_t head_size) {
  ModelConfig c = gemma_model(true, head_size);
  c.vocabulary_size = 301, c.hidden_size = 256, c.intermediate_size = 320;
  c.embedding_scale = 16;
  if (head_size == 256) c.heads = 2, c.key_value_heads = 1;
  return c;
}

// Compares log-probabilities and gradients with the CPU's.
inline void compare_with_the_cpu(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter,
                                double log_prob_bound, double cosine_bound) {
  const Setup setup{.adapter = adapter, .deviation = 0.08, .coarse_weights = true};
  Subject cpu([] { return make_cpu_device(1); }, config, setup), other(make_device, config, setup);
  const std::vector<TrainingRow> rows = training_rows(cpu);
  const auto wanted = log_probs_of(cpu, rows);
  const auto found = log_probs_of(other, rows);
  double worst = 0;
  for (size_t r = 0; r < rows.size(); r++) {
    for (size_t i = 0; i < wanted[r].size(); i++) worst = std::max(worst, std::abs(double(found[r][i]) - wanted[r][i]));
  }
  CHECK(worst < log_prob_bound, "log-probabilities differ by %g", worst);
  double least = 1;
  const auto compare = [&](const std::vector<float>& expected, const std::vector<float>& got) {
    for (const Parameter& parameter : cpu.engine.transformer().trained()) {
      const double found_cosine = cosine(&expected[parameter.offset], &got[parameter.offset], parameter.size());
      least = std::min(least, found_cosine);
      CHECK(found_cosine > cosine_bound, "%s: cosine %g", parameter.name.c_str(), found_cosine);
    }
  };
  train(cpu, rows, policy_loss());
  train(other, rows, policy_loss());
  compare(cpu.gradients(), other.gradients());
  const RowsOfOthers others(rows, config.vocabulary_size);
  compare(linear_gradients(cpu, others.batch()), linear_gradients(other, others.batch()));
  std::printf("%s, %s: log-probabilities within %.2g of the CPU's, gradients' cosine at least %.6f\n",
              other.engine.device().activation_type() == Type::f32 ? "fp32" : "bf16", adapter ? "adapter" : "model", worst, least);
}

// Compares values and the gradients of the critic with the CPU's.
inline void compare_critic_with_the_cpu(const DeviceFactory& make_device, const ModelConfig& config, const AdapterConfig& adapter,
                                  double value_bound, double cosine_bound) {
  const Setup setup{.adapter = adapter, .deviation = 0.08, .coarse_weights = true};
  CriticSubject cpu([] { return make_cpu_device(1); }, config, setup), other(make_device, config, setup);
  std::vector<TrainingRow> rows = training_rows(cpu);
  add_returns(cpu, rows);
  const std::vector<float> wanted = cpu.predict(rows), found = other.predict(rows);
  double worst = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    worst = std::max(worst, std::abs(double(found[i]) - wanted[i])), size = std::max(size, std::abs(double(wanted[i])));
  }
  CHECK(worst < value_bound * size, "values of up to %g differ by %g", size, worst);
  cpu.train(rows), other.train(rows);
  const std::vector<float> expected = cpu.gradients(), got = other.gradients();
  double least = 1;
  for (const Parameter& parameter : cpu.trained()) {
    const double found_cosine = cosine(&expected[parameter.offset], &got[parameter.offset], parameter.size());
    least = std::min(least, found_cosine);
    CHECK(found_cosine > cosine_bound, "%s: cosine %g", parameter.name.c_str(), found_cosine);
  }
  std::printf("%s, critic's %s: values within %.2g of the CPU's, gradients' cosine at least %.6f\n",
              other.engine.device().activation_type() == Type::f32 ? "fp32" : "bf16", adapter ? "adapter" : "model", worst, least);
}

}  // namespace gigpo::test
