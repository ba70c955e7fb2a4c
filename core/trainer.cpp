#include "core/trainer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace gigpo {

Trainer::Trainer(Device& device, const Transformer& transformer, const TrainerOptions& options)
    : device_(device), transformer_(transformer), options_(options), arena_(device, options.region) {}

FlatBuffer& Trainer::buffer(std::unique_ptr<FlatBuffer>& data, Type type) {
  if (!data) {
    data = std::make_unique<FlatBuffer>(device_, type, transformer_.trained_size());
    data->zero();
  }
  return *data;
}

PolicyTensors Trainer::gradient_tensors() {
  if (transformer_.adapted()) return {{}, gradients().values()};
  return {gradients().values(), {}};
}

// One entry a reply token, row after row.
struct Trainer::HeadRows {
  std::vector<const TrainingRow*> rows;
  std::vector<PolicyHeadRow> inputs;
  std::vector<PolicyHeadResult> results;

  void add(const TrainingRow& row) {
    const int64_t first = row.prompt();
    const auto at = [](const std::vector<float>& values, int64_t i) { return values.empty() ? 0 : values[i]; };
    for (int64_t i = 0; i < row.reply; i++) {
      inputs.push_back({row.tokens[first + i], row.weight, row.advantage, at(row.old_log_probs, i),
                        at(row.reference_log_probs, i), at(row.gradients, i)});
    }
    rows.push_back(&row);
    results.resize(inputs.size());
  }
};

// Steps of a group that stood in the same state often have the same prompt. Replies do not see each other, but their scores
// are computed all the same, so a bundle is closed before its replies outgrow its prompt.
std::vector<Trainer::Bundle> Trainer::share_prompts(const std::vector<TrainingRow>& rows) const {
  std::vector<Bundle> bundles;
  std::unordered_map<std::string_view, size_t> open;
  for (const TrainingRow& row : rows) {
    transformer_.check_length(int64_t(row.tokens.size()));
    const int64_t prompt = row.prompt(), added = row.reply - 1;
    const std::string_view key(reinterpret_cast<const char*>(row.tokens.data()), prompt * sizeof(int32_t));
    const auto [found, fresh] = open.try_emplace(key, bundles.size());
    if (fresh || bundles[found->second].tokens + added > 2 * prompt) {
      found->second = bundles.size();
      bundles.push_back({{}, prompt});
    }
    Bundle& bundle = bundles[found->second];
    bundle.rows.push_back(&row);
    bundle.tokens += added;
  }
  return bundles;
}

void Trainer::run(const PolicyTensors& weights, const Bundle* bundles, size_t bundle_count,
                  const PolicyHeadOptions& options, HeadRows& head) {
  PackedTokens batch;
  head = {};
  for (const Bundle* bundle = bundles; bundle < bundles + bundle_count; bundle++) {
    const TrainingRow& any = *bundle->rows.front();
    batch.add_row(any.tokens.data(), any.prompt());
    const int64_t prompt_end = batch.size();
    for (const TrainingRow* row : bundle->rows) {
      head.add(*row);
      // The first token of a reply is predicted by the prompt's last, the others by the one before them.
      for (int64_t i = 0; i < row->reply; i++) {
        batch.wanted.push_back(int32_t((i == 0 ? prompt_end : batch.size() + i) - 1));
      }
      batch.add_branch(row->tokens.data() + row->prompt(), row->reply - 1);  // nothing follows the last token
    }
  }
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, batch, arena_, kept_);
  auto* results = arena_.array<PolicyHeadResult>(hidden.rows);
  const Tensor d_hidden = run_head(weights, hidden, arena_.upload(head.inputs), options, results);
  if (d_hidden) transformer_.backward(weights, gradient_tensors(), batch, arena_, kept_, d_hidden);
  device_.download(head.results.data(), results, head.results.size() * sizeof(PolicyHeadResult));
}

// The logits of all rows never exist at once: each chunk of them is overwritten by its own gradient, and passed on.
Tensor Trainer::run_head(const PolicyTensors& weights, Tensor hidden, const PolicyHeadRow* inputs,
                         const PolicyHeadOptions& options, PolicyHeadResult* results) {
  const int64_t vocabulary = transformer_.config().vocabulary_size, count = hidden.rows;
  const int64_t chunk = std::min(count, std::max<int64_t>(device_.traits().head_logits / vocabulary, 16));
  const Tensor table = transformer_.head(weights.model), chunk_logits = arena_.tensor(chunk, vocabulary);
  const bool training = options.mode != HeadMode::score;
  const Tensor d_hidden = training ? arena_.tensor(count, hidden.columns) : Tensor{};
  const Tensor d_table = training ? transformer_.head(gradient_tensors().model) : Tensor{};
  for (int64_t at = 0; at < count; at += chunk) {
    const int64_t n = std::min(chunk, count - at);
    const Tensor logits = chunk_logits.row_range(0, n), states = hidden.row_range(at, n);
    device_.matmul(states, false, table, true, logits, false);
    device_.policy_head(logits, inputs + at, options, results + at);
    if (d_table) device_.matmul(logits, true, states, false, d_table, true);
    if (training) device_.matmul(logits, false, table, false, d_hidden.row_range(at, n), false);
  }
  return d_hidden;
}

template <class Visit>
void Trainer::each_micro_batch(const PolicyTensors& weights, const std::vector<TrainingRow>& rows,
                               const PolicyHeadOptions& options, const std::atomic<bool>& cancelled, Visit visit) {
  const std::vector<Bundle> bundles = share_prompts(rows);
  HeadRows head;
  for (size_t first = 0, last; first < bundles.size(); first = last) {
    if (cancelled) throw Error("ABORTED", "Stopped.");
    int64_t tokens = bundles[first].tokens;
    for (last = first + 1; last < bundles.size() && tokens + bundles[last].tokens <= options_.micro_batch_tokens; last++) {
      tokens += bundles[last].tokens;
    }
    run(weights, &bundles[first], last - first, options, head);
    visit(head);
  }
}

PolicyHeadSums Trainer::forward_backward(const PolicyTensors& weights, std::vector<TrainingRow> rows,
                                         const PolicyHeadOptions& options, Aggregation aggregation,
                                         bool skip_zero_advantage, const std::atomic<bool>& cancelled) {
  Normalizer normalizer;
  for (const TrainingRow& row : rows) {
    normalizer.tokens += row.reply;
    normalizer.rows += row.reply > 0;
    normalizer.longest = std::max(normalizer.longest, row.reply);
  }
  for (TrainingRow& row : rows) row.weight = float(normalizer.weight(aggregation, row.reply));
  if (skip_zero_advantage && options.mode == HeadMode::policy && options.loss.kl_weight == 0 &&
      options.entropy_weight == 0) {
    std::erase_if(rows, [](const TrainingRow& row) { return row.advantage == 0; });
  }
  PolicyHeadSums sums;
  try {
    each_micro_batch(weights, rows, options, cancelled, [&](const HeadRows& head) {
      for (size_t i = 0; i < head.inputs.size(); i++) sums.add(head.inputs[i], head.results[i], options);
    });
  } catch (...) {  // the gradient of half a batch is worth nothing, and must not reach the optimizer
    clear_gradients();
    throw;
  }
  return sums;
}

std::vector<std::vector<float>> Trainer::log_probs(const PolicyTensors& weights, const std::vector<TrainingRow>& rows,
                                                   float temperature, const std::atomic<bool>& cancelled) {
  PolicyHeadOptions options;
  options.mode = HeadMode::score;
  options.temperature = temperature;
  std::vector<std::vector<float>> result(rows.size());
  each_micro_batch(weights, rows, options, cancelled, [&](const HeadRows& head) {
    auto next = head.results.begin();
    for (const TrainingRow* row : head.rows) {
      for (int64_t i = 0; i < row->reply; i++) result[row - rows.data()].push_back((next++)->log_prob);
    }
  });
  return result;
}

std::vector<float> Trainer::logits(const PolicyTensors& weights, const std::vector<int32_t>& tokens) {
  const ModelConfig& c = transformer_.config();
  transformer_.check_length(int64_t(tokens.size()));
  PackedTokens batch;
  batch.add_row(tokens.data(), int64_t(tokens.size()));
  for (int32_t token = 0; token < batch.size(); token++) batch.wanted.push_back(token);
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, batch, arena_, kept_);
  const Tensor logits = arena_.tensor(batch.size(), c.vocabulary_size);
  device_.matmul(hidden, false, transformer_.head(weights.model), true, logits, false);
  const Tensor exact{arena_.floats(logits.rows * logits.columns), Type::f32, logits.rows, logits.columns, logits.columns};
  device_.copy(logits, exact);
  std::vector<float> result(logits.rows * logits.columns);
  device_.download(result.data(), exact.data, result.size() * sizeof(float));
  return result;
}

// Decoupled weight decay with bias correction (Loshchilov & Hutter, arXiv 1711.05101), after clipping by the global norm.
StepReport Trainer::optimizer_step(const Parameters& trained, const OptimizerOptions& options) {
  const Tensor g = gradients().values(), first = first_moment().values(), second = second_moment().values();
  const double norm = std::sqrt(device_.squared_norm(g.floats(), g.columns));
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
    step.rounding = {uint32_t(steps), uint32_t(steps >> 32)};
    for (const Parameter& parameter : transformer_.trained()) {
      step.weight_decay = parameter.shape.size() > 1 ? float(options.weight_decay) : 0;
      const int64_t at = parameter.offset;
      const auto from = [&](Tensor flat) { return flat.matrix(at, 1, parameter.size()).data; };
      device_.adamw({trained.exact() + at, trained.rounded() ? from(trained.values()) : nullptr, g.floats() + at, from(first),
                     from(second), options_.moments, at, parameter.size()},
                    step);
    }
    device_.weights_changed();
  }
  clear_gradients();
  return {norm, !finite};
}

}  // namespace gigpo
