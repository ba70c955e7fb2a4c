#include "core/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace gigpo {

Trainer::Trainer(Device& device, const Transformer& transformer, Arena& arena, const TrainerOptions& options)
    : device_(device), transformer_(transformer), options_(options), arena_(arena) {}

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

// One entry a sampled token, row after row; `columns` tells where it stands in the batch.
struct Trainer::Micro {
  std::vector<PolicyHeadRow> inputs;
  std::vector<PolicyHeadResult> results;
  std::vector<int64_t> columns;

  void add(const TrainingBatch& batch, const BatchRows::Row& row, const BatchRows::Span& span) {
    const auto at = [](const float* values, int64_t column) { return values ? values[column] : 0; };
    for (int64_t i = 0; i < span.count; i++) {
      const int64_t column = span.column + i;
      inputs.push_back({row.tokens[span.begin + i], span.weight, at(batch.advantages, column), at(batch.old_log_probs, column),
                        at(batch.reference_log_probs, column), at(batch.gradients, column), at(batch.entropy_gradients, column)});
      columns.push_back(column);
    }
  }
};

int64_t Trainer::most_tokens() const {
  return options_.longest_row > 0 ? std::max(options_.longest_row, options_.micro_batch_tokens) : INT64_MAX;
}

void Trainer::check_length(int64_t tokens) const {
  transformer_.check_length(tokens);
  if (tokens - 1 <= most_tokens()) return;  // nothing follows the last token: it is not computed
  throw Error("BAD_ARGUMENT", "A row has " + std::to_string(tokens) + " tokens, but this policy has memory to train " +
                                  std::to_string(most_tokens()) + " at once: open it with longestRow: " + std::to_string(tokens) +
                                  ", or shorten the row.");
}

std::vector<Trainer::Bundle> Trainer::bundles_of(const BatchRows& batch) const {
  for (const BatchRows::Row& row : batch.rows) check_length(batch.length(row));
  std::vector<Bundle> bundles;
  share_prompts(batch, bundles);
  share_beginnings(batch, bundles);
  return bundles;
}

// Rows of one span. Steps of a group that stood in the same state often have the same prompt. Replies do not see each other, but
// their scores are computed all the same, so a bundle is closed before its replies outgrow its prompt.
void Trainer::share_prompts(const BatchRows& batch, std::vector<Bundle>& bundles) const {
  std::unordered_map<std::string_view, size_t> open;
  for (const BatchRows::Row& row : batch.rows) {
    if (row.spans != 1) continue;
    const int64_t prompt = batch.begin(row)->begin, reply = batch.begin(row)->count, added = reply - 1;
    const std::string_view key(reinterpret_cast<const char*>(row.tokens), prompt * sizeof(int32_t));
    const auto [found, fresh] = open.try_emplace(key, bundles.size());
    const auto full = [&](const Bundle& bundle) {
      return bundle.tokens + added > std::min(2 * prompt, most_tokens()) || bundle.wanted + reply > most_tokens();
    };
    if (fresh || full(bundles[found->second])) {
      found->second = bundles.size();
      bundles.push_back({{}, prompt, 0});
    }
    Bundle& bundle = bundles[found->second];
    bundle.branches.push_back({&row, bundle.branches.empty() ? 0 : prompt});
    bundle.tokens += added;
    bundle.wanted += reply;
  }
}

// Rows of many spans, in the order of their tokens: each then has its longest beginning in common with the one before it. A tree
// ends where a micro-batch does, and where too little is shared: a token's scores with keys that it does not see, but that
// stand in one block with some that it does, are computed all the same.
void Trainer::share_beginnings(const BatchRows& batch, std::vector<Bundle>& bundles) const {
  struct Path {
    const BatchRows::Row* row;
    const int32_t *begin, *end;
  };
  std::vector<Path> paths;
  for (const BatchRows::Row& row : batch.rows) {
    if (row.spans > 1) paths.push_back({&row, row.tokens, row.tokens + batch.length(row) - 1});
  }
  std::stable_sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) {
    return std::lexicographical_compare(a.begin, a.end, b.begin, b.end);
  });
  for (size_t i = 0; i < paths.size(); i++) {
    const Path& path = paths[i];
    const int64_t length = path.end - path.begin, wanted = batch.sampled(*path.row);
    int64_t shared = i == 0 ? 0 : std::mismatch(path.begin, path.end, paths[i - 1].begin, paths[i - 1].end).first - path.begin;
    const auto fits = [&](const Bundle& tree) {
      return 4 * shared >= length - shared && tree.tokens + length - shared <= options_.micro_batch_tokens &&
             tree.wanted + wanted <= options_.micro_batch_tokens;
    };
    if (i == 0 || !fits(bundles.back())) {
      shared = 0;
      bundles.push_back({});
    }
    Bundle& tree = bundles.back();
    tree.branches.push_back({path.row, shared});
    tree.tokens += length - shared;
    tree.wanted += wanted;
  }
}

void Trainer::pass(const PolicyTensors& weights, const BatchRows& rows, const Bundle* bundles, size_t count, const RunHead& head) {
  PackedTokens packed;
  std::vector<int32_t> path;  // where the row's tokens stand
  std::vector<WantedSpan> spans;
  for (const Bundle* bundle = bundles; bundle < bundles + count; bundle++) {
    for (const auto& [row, shared] : bundle->branches) {
      const int64_t length = rows.length(*row) - 1;  // nothing follows the last token
      path.resize(shared);
      for (int64_t i = shared; i < length; i++) path.push_back(int32_t(packed.size() + i - shared));
      packed.add(row->tokens + shared, length - shared, shared);
      for (const BatchRows::Span* span = rows.begin(*row); span != rows.end(*row); span++) {
        spans.push_back({row, span});
        // Each token is predicted by the one before it.
        packed.wanted.insert(packed.wanted.end(), path.begin() + span->begin - 1, path.begin() + span->begin + span->count - 1);
      }
    }
  }
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, packed, arena_, kept_);
  const Tensor d_hidden = head(hidden, spans, arena_);
  if (d_hidden) transformer_.backward(weights, gradient_tensors(), packed, arena_, kept_, d_hidden);
}

// The logits of all rows never exist at once: each chunk of them is overwritten by its own gradient, and passed on.
Tensor Trainer::run_head(const PolicyTensors& weights, Tensor hidden, const PolicyHeadRow* inputs,
                         const PolicyHeadOptions& options, PolicyHeadResult* results) {
  const int64_t vocabulary = transformer_.config().vocabulary_size, count = hidden.rows;
  const int64_t chunk = std::min(count, device_.traits().head_rows(vocabulary));
  const Tensor table = transformer_.head(weights), chunk_logits = arena_.tensor(chunk, vocabulary);
  const bool training = options.mode != HeadMode::score;
  const Tensor d_hidden = training ? arena_.tensor(count, hidden.columns) : Tensor{};
  const Tensor d_table = training ? transformer_.head(gradient_tensors()) : Tensor{};
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

void Trainer::each_pass(const PolicyTensors& weights, const BatchRows& rows, const std::atomic<bool>& cancelled,
                        const RunHead& head, const std::function<void()>& done) {
  const std::vector<Bundle> bundles = bundles_of(rows);
  for (size_t first = 0, last; first < bundles.size(); first = last) {
    if (cancelled) throw Error("ABORTED", "Stopped.");
    int64_t tokens = 0, wanted = 0;
    const auto fits = [&](const Bundle& next) {
      return tokens + next.tokens <= options_.micro_batch_tokens && wanted + next.wanted <= most_tokens();
    };
    for (last = first; last < bundles.size() && (last == first || fits(bundles[last])); last++) {
      tokens += bundles[last].tokens;
      wanted += bundles[last].wanted;
    }
    pass(weights, rows, &bundles[first], last - first, head);
    done();
  }
}

template <class Visit>
void Trainer::each_micro_batch(const PolicyTensors& weights, const TrainingBatch& batch, const BatchRows& rows,
                               const PolicyHeadOptions& options, const std::atomic<bool>& cancelled, Visit visit) {
  Micro micro;
  PolicyHeadResult* results = nullptr;
  const auto head = [&](Tensor hidden, const std::vector<WantedSpan>& spans, Arena& arena) {
    micro = {};
    for (const auto& [row, span] : spans) micro.add(batch, *row, *span);
    results = arena.array<PolicyHeadResult>(hidden.rows);
    return run_head(weights, hidden, arena.upload(micro.inputs), options, results);
  };
  each_pass(weights, rows, cancelled, head, [&] {
    micro.results.resize(micro.inputs.size());
    device_.download(micro.results.data(), results, micro.results.size() * sizeof(PolicyHeadResult));
    visit(micro);
  });
}

LossReport Trainer::forward_backward(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                                     const std::atomic<bool>& cancelled) {
  batch.check(transformer_.config().vocabulary_size);
  return or_clear([&] {
    const bool sequences = loss.head.mode == HeadMode::policy && loss.ratio == RatioLevel::sequence;
    return sequences ? train_on_sequences(weights, batch, loss, cancelled) : train(weights, batch, loss, cancelled);
  });
}

LossReport Trainer::train(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                          const std::atomic<bool>& cancelled) {
  const PolicyHeadOptions& options = loss.head;
  BatchRows rows(batch);
  Normalizer normalizer;
  const auto count = [&](int64_t tokens) {
    normalizer.tokens += tokens;
    normalizer.rows++;
    normalizer.longest = std::max(normalizer.longest, tokens);
  };
  for (const BatchRows::Row& row : rows.rows) {
    if (loss.unit == Unit::row) count(rows.sampled(row));
    else std::for_each(rows.begin(row), rows.end(row), [&](const BatchRows::Span& span) { count(span.count); });
  }
  for (const BatchRows::Row& row : rows.rows) {
    for (int64_t i = row.span; i < row.span + row.spans; i++) {
      BatchRows::Span& span = rows.spans[i];
      span.weight = float(
          normalizer.weight(loss.aggregation, loss.fixed_length, loss.unit == Unit::row ? rows.sampled(row) : span.count));
    }
  }
  if (loss.skip_zero_advantage && options.mode == HeadMode::policy && options.loss.kl_weight == 0 && options.entropy_weight == 0) {
    rows.keep([&](const BatchRows::Span& span) {
      const float* first = batch.advantages + span.column;
      return std::any_of(first, first + span.count, [](float advantage) { return advantage != 0; });
    });
  }
  PolicyHeadSums sums;
  std::vector<float> log_probs(batch.sampled(), std::numeric_limits<float>::quiet_NaN());
  each_micro_batch(weights, batch, rows, options, cancelled, [&](const Micro& micro) {
    for (size_t i = 0; i < micro.inputs.size(); i++) {
      sums.add(micro.inputs[i], micro.results[i], options);
      log_probs[micro.columns[i]] = micro.results[i].log_prob;
    }
  });
  const double tokens = double(std::max<int64_t>(sums.tokens, 1));
  return {.loss = sums.loss,
          .tokens = sums.tokens,
          .entropy = sums.entropy / tokens,
          .clip_fraction = double(sums.clipped) / tokens,
          .dual_clip_fraction = double(sums.dual_clipped) / tokens,
          .kl = sums.kl / tokens,
          .policy_kl = sums.policy_kl / tokens,
          .ratio = sums.ratio / tokens,
          .log_probs = std::move(log_probs)};
}

// GSPO (arXiv 2507.18071): one ratio for a whole sequence, so all of its log-probabilities are needed before any gradient. Its
// gradient by them is then a linear loss, beside which the entropy bonus is what it always is.
LossReport Trainer::train_on_sequences(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                                       const std::atomic<bool>& cancelled) {
  const std::vector<float> log_probs = scores(weights, batch, float(loss.head.temperature), cancelled).log_probs;
  const BatchRows rows(batch);
  std::vector<int32_t> lengths;
  for (const BatchRows::Row& row : rows.rows) {
    if (loss.unit == Unit::row) lengths.push_back(int32_t(rows.sampled(row)));
    else lengths.insert(lengths.end(), batch.span_counts + row.span, batch.span_counts + row.span + row.spans);
  }
  const std::vector<float> mask(log_probs.size(), 1);
  const ClippedSurrogateInput input{int64_t(lengths.size()), int64_t(log_probs.size()), lengths.data(), log_probs.data(),
                                    batch.old_log_probs, batch.advantages, mask.data(), batch.reference_log_probs};
  ClippedSurrogateOptions options{loss.head.loss};
  options.aggregation = loss.aggregation, options.fixed_length = loss.fixed_length, options.ratio = loss.ratio;
  std::vector<float> gradients(log_probs.size());
  const ClippedSurrogateReport found = clipped_surrogate(input, options, gradients.data());
  // The surrogate's KL is aggregated as its loss is; the report wants the mean over tokens.
  options.aggregation = Aggregation::token_mean;
  const double kl = clipped_surrogate(input, options, nullptr).kl;

  TrainingBatch linear = batch;
  linear.gradients = gradients.data(), linear.entropy_gradients = nullptr;
  TrainingLoss bonus = loss;
  bonus.head.mode = HeadMode::linear;
  LossReport report = train(weights, linear, bonus, cancelled);
  report.loss += found.loss;
  report.clip_fraction = found.clip_fraction, report.dual_clip_fraction = found.dual_clip_fraction;
  report.kl = kl, report.policy_kl = found.policy_kl, report.ratio = found.ratio;
  return report;
}

Scores Trainer::scores(const PolicyTensors& weights, const TrainingBatch& batch, float temperature,
                       const std::atomic<bool>& cancelled) {
  batch.check(transformer_.config().vocabulary_size);
  PolicyHeadOptions options;
  options.mode = HeadMode::score;
  options.temperature = temperature;
  const int64_t sampled = batch.sampled();
  Scores found{std::vector<float>(sampled), std::vector<float>(sampled)};
  each_micro_batch(weights, batch, BatchRows(batch), options, cancelled, [&](const Micro& micro) {
    for (size_t i = 0; i < micro.results.size(); i++) {
      found.log_probs[micro.columns[i]] = micro.results[i].log_prob;
      found.entropies[micro.columns[i]] = micro.results[i].entropy;
    }
  });
  return found;
}

std::vector<float> Trainer::logits(const PolicyTensors& weights, const std::vector<int32_t>& tokens) {
  const ModelConfig& c = transformer_.config();
  transformer_.check_length(int64_t(tokens.size()));
  PackedTokens batch;
  batch.add(tokens.data(), int64_t(tokens.size()), 0);
  for (int32_t token = 0; token < batch.size(); token++) batch.wanted.push_back(token);
  arena_.reset();
  const Tensor hidden = transformer_.forward(weights, batch, arena_, kept_);
  const Tensor logits = arena_.tensor(batch.size(), c.vocabulary_size);
  device_.matmul(hidden, false, transformer_.head(weights), true, logits, false);
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
    device_.weights_changed(trained.values());
  }
  clear_gradients();
  return {norm, !finite};
}

}  // namespace gigpo
