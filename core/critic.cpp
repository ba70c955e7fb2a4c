#include "core/critic.h"

#include <limits>

namespace gigpo {

static ModelConfig with_value_head(ModelConfig config) {
  config.head = Head::value;
  return config;
}

Critic::Critic(Device& device, const Learner& actor, Arena& arena)
    : Learner(device, with_value_head(actor.transformer().config()), actor.options(), arena,
              actor.options().adapter ? &actor.base() : nullptr),
      device_(device) {
  // Everything before the head has the same offsets in policy and critic.
  const Transformer& own = transformer();
  const int64_t head = own.adapted() ? own.adapter_layout().before_head : own.layout().head;
  trained().zero();
  trained().copy(actor.trained(), head);
}

// Runs the value head on all micro-batches. Calls `visit` with the results of the sampled tokens and their columns in the batch.
template <class Visit>
void Critic::each_micro_batch(const TrainingBatch& batch, const ValueHeadOptions& options, const std::atomic<bool>& cancelled,
                              Visit visit) {
  std::vector<ValueHeadRow> inputs;
  std::vector<int64_t> columns;
  std::vector<ValueHeadResult> results;
  ValueHeadResult* found = nullptr;
  const auto at = [](const float* values, int64_t column) { return values ? values[column] : 0; };
  const auto head = [&](const Trainer::Hidden& given, Arena& arena) {
    const Tensor hidden = given.own;
    inputs.clear(), columns.clear();
    for (const auto& [row, span] : given.spans) {
      for (int64_t column = span->column; column < span->column + span->count; column++) {
        inputs.push_back({at(batch.returns, column), at(batch.old_values, column)});
        columns.push_back(column);
      }
    }
    found = arena.array<ValueHeadResult>(hidden.rows);
    const Tensor d_hidden = options.training ? arena.tensor(hidden.rows, hidden.columns) : Tensor{};
    const Tensor d_score = options.training ? transformer().head(trainer().gradient_tensors()) : Tensor{};
    device_.value_head(hidden, transformer().head(weights()), arena.upload(inputs), options, found, d_hidden, d_score);
    return d_hidden;
  };
  trainer().each_pass({weights()}, BatchRows(batch), cancelled, head, [&] {
    results.resize(inputs.size());
    device_.download(results.data(), found, results.size() * sizeof(ValueHeadResult));
    visit(results, columns);
  });
}

std::vector<float> Critic::predict(const TrainingBatch& batch, const std::atomic<bool>& cancelled) {
  batch.check(transformer().config().vocabulary_size);
  std::vector<float> values(batch.sampled(), std::numeric_limits<float>::quiet_NaN());
  each_micro_batch(batch, {}, cancelled, [&](const auto& results, const auto& columns) {
    for (size_t i = 0; i < results.size(); i++) values[columns[i]] = results[i].value;
  });
  return values;
}

ValueReport Critic::forward_backward(const TrainingBatch& batch, double clip, const std::atomic<bool>& cancelled) {
  batch.check(transformer().config().vocabulary_size);
  return trainer().or_clear([&] {
    ValueReport report;
    report.tokens = batch.sampled();
    const ValueHeadOptions options{true, clip, 1 / double(std::max<int64_t>(report.tokens, 1))};
    each_micro_batch(batch, options, cancelled, [&](const auto& results, const auto&) {
      for (const ValueHeadResult& result : results) {
        report.loss += options.weight * result.loss;
        report.clip_fraction += options.weight * result.clipped;
        report.value += options.weight * result.value;
      }
    });
    return report;
  });
}

}  // namespace gigpo
