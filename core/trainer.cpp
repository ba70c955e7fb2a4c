#include "core/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace gigpo {

constexpr int64_t logits_budget = int64_t{1} << 20;  // floats of one chunk of logits: it should stay in the cache

Trainer::Trainer(Device& device, const Transformer& transformer, int64_t micro_batch_tokens)
    : device_(device), transformer_(transformer), micro_batch_tokens_(micro_batch_tokens), arena_(device) {}

Trainer::~Trainer() {
  for (float* data : {gradients_, first_moment_, second_moment_}) device_.release(data);
}

float* Trainer::buffer(float*& data) {
  if (!data) {
    const size_t bytes = transformer_.layout().size * sizeof(float);
    data = static_cast<float*>(device_.allocate(bytes));
    device_.zero(data, bytes);
  }
  return data;
}

// One entry a reply token, in the order of the rows.
struct Trainer::HeadRows {
  std::vector<int32_t> sources;  // the position whose hidden state predicts the token
  std::vector<PolicyHeadRow> inputs;
  std::vector<PolicyHeadResult> results;

  void gather(const TrainingRow& row, int64_t offset, float weight) {
    const int64_t first = int64_t(row.tokens.size()) - row.reply;
    const auto at = [](const std::vector<float>& values, int64_t i) { return values.empty() ? 0 : values[i]; };
    for (int64_t i = 0; i < row.reply; i++) {
      sources.push_back(int32_t(offset + first + i - 1));
      inputs.push_back({row.tokens[first + i], weight, row.advantage, at(row.old_log_probs, i),
                        at(row.reference_log_probs, i), at(row.gradients, i)});
    }
    results.resize(inputs.size());
  }
};

size_t Trainer::micro_batch_end(const std::vector<TrainingRow>& rows, size_t first) const {
  int64_t tokens = 0;
  size_t end = first;
  while (end < rows.size() && (end == first || tokens + int64_t(rows[end].tokens.size()) <= micro_batch_tokens_)) {
    tokens += int64_t(rows[end++].tokens.size());
  }
  return end;
}

void Trainer::run(const float* weights, const std::vector<TrainingRow>& rows, size_t first, size_t last,
                  const std::vector<float>& row_weights, const PolicyHeadOptions& options, HeadRows& head) {
  const ModelConfig& c = transformer_.config();
  PackedTokens batch;
  head = {};
  for (size_t r = first; r < last; r++) {
    head.gather(rows[r], batch.size(), row_weights.empty() ? 1 : row_weights[r]);
    batch.add(rows[r].tokens.data(), int64_t(rows[r].tokens.size()));
  }
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, batch, arena_, kept_);

  const bool training = options.mode != HeadMode::score;
  const auto count = int64_t(head.inputs.size());
  const int64_t chunk = std::clamp<int64_t>(logits_budget / c.vocabulary_size, 16, std::max<int64_t>(count, 16));
  const Tensor table = transformer_.matrix(weights, transformer_.layout().head, c.vocabulary_size, c.hidden_size);
  const Tensor replies = arena_.tensor(count, c.hidden_size), d_replies = arena_.tensor(count, c.hidden_size);
  const Tensor chunk_logits = arena_.tensor(std::min(chunk, count), c.vocabulary_size);
  const int32_t* sources = arena_.upload(head.sources);
  device_.gather(sources, hidden, replies);
  for (int64_t at = 0; at < count; at += chunk) {
    const int64_t n = std::min(chunk, count - at);
    const Tensor logits = chunk_logits.row_range(0, n), states = replies.row_range(at, n);
    device_.matmul(states, false, table, true, logits, false);
    device_.policy_head(logits, head.inputs.data() + at, options, head.results.data() + at);
    if (!training) continue;
    const Tensor d_table =
        transformer_.matrix(gradients(), transformer_.layout().head, c.vocabulary_size, c.hidden_size);
    device_.matmul(logits, true, states, false, d_table, true);
    device_.matmul(logits, false, table, false, d_replies.row_range(at, n), false);
  }
  if (!training) return;
  const Tensor d_hidden = arena_.tensor(batch.size(), c.hidden_size);
  device_.zero(d_hidden.data, d_hidden.rows * d_hidden.columns * bytes_of(d_hidden.type));
  device_.scatter_add(sources, d_replies, d_hidden);
  transformer_.backward(weights, gradients(), batch, arena_, kept_, d_hidden);
}

PolicyHeadSums Trainer::forward_backward(const float* weights, const std::vector<TrainingRow>& rows,
                                         const PolicyHeadOptions& options, Aggregation aggregation,
                                         const std::atomic<bool>& cancelled) {
  Normalizer normalizer;
  for (const TrainingRow& row : rows) {
    normalizer.tokens += row.reply;
    normalizer.rows += row.reply > 0;
    normalizer.longest = std::max(normalizer.longest, row.reply);
  }
  std::vector<float> row_weights;
  for (const TrainingRow& row : rows) row_weights.push_back(float(normalizer.weight(aggregation, row.reply)));
  PolicyHeadSums sums;
  HeadRows head;
  for (size_t first = 0, last; first < rows.size(); first = last) {
    if (cancelled) throw Error("ABORTED", "Stopped.");
    last = micro_batch_end(rows, first);
    run(weights, rows, first, last, row_weights, options, head);
    for (size_t i = 0; i < head.inputs.size(); i++) sums.add(head.inputs[i], head.results[i], options);
  }
  return sums;
}

std::vector<std::vector<float>> Trainer::log_probs(const float* weights, const std::vector<TrainingRow>& rows,
                                                   float temperature, const std::atomic<bool>& cancelled) {
  PolicyHeadOptions options;
  options.mode = HeadMode::score;
  options.temperature = temperature;
  std::vector<std::vector<float>> result;
  HeadRows head;
  for (size_t first = 0, last; first < rows.size(); first = last) {
    if (cancelled) throw Error("ABORTED", "Stopped.");
    last = micro_batch_end(rows, first);
    run(weights, rows, first, last, {}, options, head);
    auto next = head.results.begin();
    for (size_t r = first; r < last; r++) {
      result.emplace_back();
      for (int64_t i = 0; i < rows[r].reply; i++) result.back().push_back((next++)->log_prob);
    }
  }
  return result;
}

std::vector<float> Trainer::logits(const float* weights, const std::vector<int32_t>& tokens) {
  const ModelConfig& c = transformer_.config();
  PackedTokens batch;
  batch.add(tokens.data(), int64_t(tokens.size()));
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, batch, arena_, kept_);
  const Tensor logits = arena_.tensor(batch.size(), c.vocabulary_size);
  const Tensor table = transformer_.matrix(weights, transformer_.layout().head, c.vocabulary_size, c.hidden_size);
  device_.matmul(hidden, false, table, true, logits, false);
  std::vector<float> result(logits.rows * logits.columns);
  device_.download(result.data(), logits.data, result.size() * sizeof(float));
  return result;
}

// Decoupled weight decay with bias correction (Loshchilov & Hutter, arXiv 1711.05101), after clipping by the global norm.
StepReport Trainer::optimizer_step(float* weights, const OptimizerOptions& options) {
  const ModelLayout& layout = transformer_.layout();
  const double norm = std::sqrt(device_.squared_norm(gradients(), layout.size));
  const bool finite = std::isfinite(norm);
  if (finite) {
    steps++;
    AdamW step{};
    step.learning_rate = float(options.learning_rate);
    step.beta1 = float(options.beta1);
    step.beta2 = float(options.beta2);
    step.epsilon = float(options.epsilon);
    step.gradient_scale = float(std::min(1.0, options.max_gradient_norm / (norm + 1e-6)));
    step.correction1 = float(1 - std::pow(options.beta1, double(steps)));
    step.correction2 = float(1 - std::pow(options.beta2, double(steps)));
    for (const Parameter& parameter : layout.parameters) {
      step.weight_decay = parameter.shape.size() > 1 ? float(options.weight_decay) : 0;
      device_.adamw(weights + parameter.offset, gradients() + parameter.offset, first_moment() + parameter.offset,
                    second_moment() + parameter.offset, parameter.size(), step);
    }
  }
  clear_gradients();
  return {norm, !finite};
}

void Trainer::clear_gradients() { device_.zero(gradients(), transformer_.layout().size * sizeof(float)); }

}  // namespace gigpo
