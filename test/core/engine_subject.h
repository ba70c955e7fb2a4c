// Engine on any device with a tiny random model and training rows, and helpers for log-probabilities, losses and
// gradients.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "core/bf16.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/initialize.h"
#include "test/core/check.h"
#include "test/core/small_grammar.h"
#include "test/core/training_rows.h"

namespace gigpo::test {

using DeviceFactory = std::function<std::unique_ptr<Device>()>;

// Tolerances that the device's number format needs.
struct Bounds {
  double slope;     // relative error of a directional derivative; 0: too coarse for finite differences
  double log_prob;  // absolute difference between sampling and scoring
  int64_t longest_prompt = 1500, step_tokens = 1024;  // smaller for slow devices
  int optimizer_steps = 20;                           // likewise
  double merged = log_prob;                           // between an adapter and the merged weights, which are rounded again

  // Upper bound of a loss after optimizer_steps steps.
  double learned(double before) const { return before * (optimizer_steps < 20 ? 0.95 : 0.7); }
};

inline ModelConfig tiny_model(bool biases_and_tied, int64_t head_size = 8) {
  ModelConfig c{};
  c.vocabulary_size = 53, c.hidden_size = 24, c.intermediate_size = 40, c.layers = 2;
  c.heads = 4, c.key_value_heads = 2, c.head_size = head_size, c.max_positions = 2048;
  c.rms_norm_epsilon = 1e-5, c.rotary = {{1000}};
  c.tie_embeddings = c.query_key_value_bias = biases_and_tied;
  c.query_key_norm = !biases_and_tied;
  return c;
}

// Model with a sliding window shorter than most rows in one layer, and a layer without rotary positions.
inline ModelConfig windowed_model(bool biases_and_tied, int64_t head_size = 8) {
  ModelConfig c = tiny_model(biases_and_tied, head_size);
  c.kinds = {{.window = 21}, {.rope = LayerKind::none}};
  return c;
}

// Model in the form of Gemma 3: scaled embeddings, norms of 1 + w around both blocks, GeGLU, and two rotary tables, one
// for layers with windows.
inline ModelConfig gemma_model(bool tied, int64_t head_size = 8) {
  ModelConfig c = tiny_model(false, head_size);
  c.tie_embeddings = tied;
  c.gate = Gate::gelu_tanh, c.norm_offset = 1, c.branch_norms = true;
  c.embedding_scale = std::sqrt(double(c.hidden_size)), c.query_scalar = double(2 * head_size);
  c.rotary = {{1000}, {50}};
  c.kinds = {{.window = 21, .rope = 1}, {.rope = 0}};
  return c;
}

// Options of a subject.
struct Setup {
  int64_t micro_batch_tokens = 64, longest_row = 0, cache_bytes = 1 << 20, step_tokens = 1024, region_bytes = 0;
  AdapterConfig adapter;
  Recompute recompute = Recompute::none;
  Type moments = Type::f32;
  bool share_prefixes = true, trained = true;
  Replica replica = {};
  double deviation = 0.3;          // of the initial weights
  bool coarse_weights = false;     // weights are rounded to bf16
};

// A model with its weights on a device.
struct Subject {
  Subject(const DeviceFactory& make_device, const ModelConfig& config, const Setup& setup = {})
      : engine(make_device(), config,
               {.micro_batch_tokens = setup.micro_batch_tokens, .longest_row = setup.longest_row, .cache_bytes = setup.cache_bytes,
                .step_tokens = setup.step_tokens, .region_bytes = setup.region_bytes, .adapter = setup.adapter,
                .recompute = setup.recompute, .moments = setup.moments, .share_prefixes = setup.share_prefixes, .replica = setup.replica, .trained = setup.trained}),
        host(engine.transformer().layout().size) {
    initialize(config, engine.transformer().layout(), setup.deviation, {3, 4}, std::atomic<bool>(false), host.data());
    for (const Parameter& parameter : engine.transformer().layout().parameters) {  // norms and biases that affect results
      if (parameter.shape.size() > 1) continue;
      for (int64_t i = 0; i < parameter.size(); i++) host[parameter.offset + i] += 0.2f * uniform(parameter.offset + i);
    }
    const auto round = [&] {
      for (float& value : host) value = setup.coarse_weights ? from_bf16(to_bf16(value)) : value;
    };
    round();
    engine.actor().write(Buffer::weights, 0, host);
    if (setup.adapter) {
      host.resize(engine.transformer().trained_size());
      for (size_t i = 0; i < host.size(); i++) host[i] = float(setup.deviation) * uniform(int64_t(i) + 7777);
      for (const Parameter& parameter : engine.transformer().trained()) {  // norms that are trained in full
        if (parameter.shape.size() > 1) continue;
        for (int64_t i = 0; i < parameter.size(); i++) host[parameter.offset + i] += 1 - config.norm_offset;
      }
      round();
      engine.actor().write(Buffer::adapter, 0, host);
    }
  }

  static float uniform(int64_t i) { return 2 * open_uniform(philox({8, 8}, uint32_t(i), 0, 0, 0).word[0]) - 1; }

  // Sets the trained weights.
  void set_weights(const std::vector<float>& values) { engine.actor().write(engine.actor().trained_buffer(), 0, values); }
  // Invalidates the KV cache, because the weights count as changed.
  void forget_cached() { set_weights(weights()); }
  std::vector<float> weights() { return read(engine.actor().trained_buffer()); }
  std::vector<float> gradients() { return read(Buffer::gradients); }
  std::vector<float> read(Buffer buffer) {
    std::vector<float> result(host.size());
    engine.actor().read(buffer, 0, result.data(), int64_t(result.size()));
    return result;
  }

  Engine engine;
  std::vector<float> host;  // initial trained weights
  std::atomic<bool> cancelled = false;
};

inline std::vector<int32_t> random_tokens(int64_t count, uint32_t stream, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; i++) {
    tokens.push_back(int32_t(philox({1, 2}, uint32_t(i), stream, 0, 0).word[0] % uint32_t(vocabulary)));
  }
  return tokens;
}

// Log-probabilities per row.
inline std::vector<std::vector<float>> log_probs_of(Subject& subject, const std::vector<TrainingRow>& rows, float temperature = 0.8f,
                                                    Policy of = Policy::current) {
  const Scores scores = subject.engine.scores(of, FlatBatch(rows), temperature, subject.cancelled);
  std::vector<std::vector<float>> result;
  auto next = scores.log_probs.begin();
  for (const TrainingRow& row : rows) {
    result.emplace_back(next, next + row.sampled());
    next += row.sampled();
  }
  return result;
}

// Offsets of old log-probabilities that stay away from every bound of the clip.
inline float log_ratio(size_t index) {
  constexpr float all[] = {-0.9f, -0.4f, -0.1f, 0.f, 0.1f, 0.4f, 0.9f, 1.4f};
  return all[index % std::size(all)];
}

// Adds old log-probabilities, with a different ratio per token.
inline void add_log_probs(Subject& subject, std::vector<TrainingRow>& rows) {
  const auto log_probs = log_probs_of(subject, rows);
  for (size_t r = 0; r < rows.size(); r++) {
    for (int64_t i = 0; i < rows[r].sampled(); i++) {
      rows[r].old_log_probs.push_back(log_probs[r][i] - log_ratio(3 * r + size_t(i)));
      rows[r].reference_log_probs.push_back(log_probs[r][i] + 0.5f * Subject::uniform(i));
    }
  }
}

// Rows of several lengths, two with the same prompt, and one sampled under a grammar that allowed a single token at its
// end.
inline std::vector<TrainingRow> training_rows(Subject& subject) {
  const int64_t vocabulary = subject.engine.transformer().config().vocabulary_size;
  std::vector<TrainingRow> rows;
  for (const auto& [prompt, reply] : {std::pair{1, 1}, {5, 9}, {30, 20}, {5, 3}, {70, 40}}) {
    rows.push_back(step_row(random_tokens(prompt, uint32_t(prompt), vocabulary), random_tokens(reply, uint32_t(100 + reply), vocabulary),
                            1.5f - float(rows.size())));
  }
  rows.push_back(step_row(random_tokens(9, 9, vocabulary), {7, 50, 16, 5, 7, 8, 20, 49}, 1.5f, small_grammar()));
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
  subject.engine.actor().clear_gradients();
  return subject.engine.forward_backward(FlatBatch(rows), loss, subject.cancelled);
}

inline double train(Subject& subject, const std::vector<TrainingRow>& rows, const PolicyHeadOptions& options) {
  return train(subject, rows, {.head = options, .aggregation = Aggregation::sequence_mean_token_mean}).loss;
}

// Weights of the model with the adapter merged, read in pieces that end within a row.
inline std::vector<float> merged_weights(Learner& learner) {
  const ModelLayout& layout = learner.merged();
  std::vector<float> merged(layout.size);
  int64_t at = 0;
  const auto read_until = [&](int64_t end) {
    learner.read(Buffer::merged, at, merged.data() + at, end - at);
    at = end;
  };
  for (const Parameter& parameter : layout.parameters) read_until(parameter.offset + parameter.size() / 3);
  read_until(layout.size);
  return merged;
}

// |found - wanted| / |wanted|
inline double distance(const std::vector<float>& found, const std::vector<float>& wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += std::pow(double(found[i]) - wanted[i], 2), norm += double(wanted[i]) * wanted[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace gigpo::test
