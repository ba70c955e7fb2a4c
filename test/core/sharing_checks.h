// Checks of rows with common prefixes on any device: they score and train as if separate.
#pragma once
#include "test/core/engine_subject.h"

namespace gigpo::test {

// Conversations of a group: they start with the same prefix and diverge at a sampled token or at an observation.
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
      const uint32_t own = turn < member / 2 ? 0 : 10 * member;  // the same as the others up to this turn
      add(5 + 3 * turn, 100 + turn + own, true);
      if (turn % 2 == 0) add(4, 200 + turn + own, false);  // sometimes two spans are adjacent
    }
    if (member == 3) add(9, 300, false);  // trailing context that no span needs
    for (int64_t i = 0; i < row.sampled(); i++) row.advantages.push_back(Subject::uniform(1000 * member + i));
    rows.push_back(std::move(row));
  }
  rows.push_back(rows[4]);  // a duplicate
  rows.push_back(step_row(random_tokens(20, 1, vocabulary), random_tokens(6, 9, vocabulary), 0.5f));
  rows.push_back(step_row(random_tokens(20, 1, vocabulary), {5, 50, 20, 49}, -0.5f, small_grammar()));
  add_log_probs(subject, rows);
  return rows;
}

// The same spans with one row each.
inline std::vector<TrainingRow> one_by_one(const std::vector<TrainingRow>& rows) {
  std::vector<TrainingRow> result;
  for (const TrainingRow& row : rows) {
    int64_t first = 0;
    for (const auto& [begin, count, constraint] : row.spans) {
      const auto part = [&, first = first, count = count](const std::vector<float>& column) {
        return column.empty() ? column : std::vector<float>(column.begin() + first, column.begin() + first + count);
      };
      TrainingRow step;
      step.tokens.assign(row.tokens.begin(), row.tokens.begin() + begin + count);
      step.spans = {{begin, count, constraint}};
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

// The same rows with one ratio per span instead of one per token: the mean of several might be anywhere, even at a
// bound of the clip.
inline std::vector<TrainingRow> with_span_ratios(std::vector<TrainingRow> rows) {
  for (size_t r = 0; r < rows.size(); r++) {
    size_t token = 0;
    for (size_t span = 0; span < rows[r].spans.size(); span++) {
      for (const size_t end = token + size_t(rows[r].spans[span].count); token < end; token++)
        rows[r].old_log_probs[token] += log_ratio(3 * r + token) - log_ratio(r + span);
    }
  }
  return rows;
}

// Rows of many spans score and train like one row per step, in micro-batches of any size.
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
    const std::vector<float> found = flat(log_probs_of(together, rows));
    const std::vector<float> wanted = flat(log_probs_of(apart, one_by_one(rows)));
    for (size_t i = 0; i < wanted.size(); i++) CHECK(std::abs(found[i] - wanted[i]) < bounds.log_prob, "%g, not %g", found[i], wanted[i]);
    const auto check = [&](const TrainingLoss& loss, const char* what) {
      const LossReport one = train(together, rows, loss), other = train(apart, one_by_one(rows), loss);
      CHECK(one.tokens == other.tokens && std::abs(one.loss - other.loss) < bounds.log_prob * std::max(1.0, std::abs(other.loss)),
            "%s: %g, not %g", what, one.loss, other.loss);
      const double difference = distance(together.gradients(), apart.gradients());
      CHECK(difference < bounds.log_prob, "%s: gradients %g apart", what, difference);
    };
    check({.head = policy_loss()}, "token mean");
    check({.head = policy_loss(), .aggregation = Aggregation::sequence_mean_token_mean}, "sequence mean");
    std::vector<TrainingRow> by_token = rows;
    rows = with_span_ratios(std::move(rows));
    check({.head = policy_loss(), .ratio = RatioLevel::sequence}, "one ratio per sequence");
    rows = std::move(by_token);
    check({.head = {.mode = HeadMode::sft}}, "cloning");
    for (TrainingRow& row : rows) {
      for (int64_t i = 0; i < row.sampled(); i++) {
        row.gradients.push_back(Subject::uniform(500 + i)), row.entropy_gradients.push_back(0.3f * Subject::uniform(900 + i));
      }
    }
    check({.head = {.mode = HeadMode::linear, .has_entropy_gradient = true}}, "linear");
    for (TrainingRow& row : rows) row.gradients.clear(), row.entropy_gradients.clear();
  }
}

// Conversations, their steps as separate rows, and steps whose prompts share prefixes: prefixes are computed once at
// any depth, in micro-batches of any size, and only the counts change.
inline void check_shared_prefixes(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  Subject apart(make_device, config, {.share_prefixes = false});
  std::vector<TrainingRow> rows = conversations(apart);
  int64_t longest = 0, all = 0;
  for (TrainingRow& step : one_by_one(rows)) rows.push_back(std::move(step));
  for (const TrainingRow& row : rows) {
    const auto& [begin, count, constraint] = row.spans.back();
    longest = std::max(longest, begin + count - 1), all += begin + count - 1;
  }
  const auto wanted = log_probs_of(apart, rows);
  const LossReport separate = train(apart, rows, {.head = policy_loss()});
  CHECK(separate.passed.computed == all && separate.passed.reused == 0, "%d of %d computed", int(separate.passed.computed), int(all));
  int64_t before = all;
  for (const int64_t size : {int64_t{64}, 2 * longest, int64_t{1} << 20}) {
    Subject together(make_device, config, {.micro_batch_tokens = size});
    const auto found = log_probs_of(together, rows);
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

}  // namespace gigpo::test
