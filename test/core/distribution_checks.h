// Checks of results about whole distributions on any device, and of gradients by other tokens than the sampled ones.
#pragma once
#include "test/core/engine_subject.h"

namespace gigpo::test {

// Rows with gradients by the sampled tokens and by three other tokens per position, of which one is the sampled token
// and another may occur twice.
class RowsOfOthers {
 public:
  static constexpr int64_t count = 3;
  RowsOfOthers(std::vector<TrainingRow> rows, int64_t vocabulary) : rows_(std::move(rows)) {
    int64_t at = 0;
    for (TrainingRow& row : rows_) {
      for (const TrainingRow::Span& span : row.spans) {
        for (int64_t i = 0; i < span.count; i++, at++) {
          row.gradients.push_back(Subject::uniform(at));
          row.entropy_gradients.push_back(0.1f * Subject::uniform(at + 3));
          tokens_.push_back(row.tokens[size_t(span.begin + i)]);
          for (const int64_t stride : {5, 11}) tokens_.push_back(int32_t(stride * at % (vocabulary / 2)));
        }
      }
    }
    for (size_t i = 0; i < tokens_.size(); i++) gradients_.push_back(0.5f * Subject::uniform(int64_t(i) + 900));
    flat_ = std::make_unique<FlatBatch>(rows_);
  }
  TrainingBatch batch() const {
    TrainingBatch batch = *flat_;
    batch.top = count, batch.top_tokens = tokens_.data(), batch.top_gradients = gradients_.data();
    return batch;
  }

 private:
  std::vector<TrainingRow> rows_;
  std::vector<int32_t> tokens_;
  std::vector<float> gradients_;
  std::unique_ptr<FlatBatch> flat_;
};

inline std::vector<float> linear_gradients(Subject& subject, const TrainingBatch& batch) {
  TrainingLoss loss;
  loss.head.mode = HeadMode::linear, loss.head.temperature = 0.8, loss.head.has_entropy_gradient = batch.entropy_gradients != nullptr;
  subject.engine.actor().clear_gradients();
  subject.engine.forward_backward(batch, loss, subject.cancelled);
  return subject.gradients();
}

// Hellinger distance of the distributions p and q at one position.
inline double hellinger_of(const float* log_p, const float* log_q, int64_t vocabulary) {
  double squares = 0;
  for (int64_t j = 0; j < vocabulary; j++) squares += std::pow(std::exp(0.5 * double(log_p[j])) - std::exp(0.5 * double(log_q[j])), 2);
  return std::sqrt(squares / 2);
}

inline void check_distributions(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds,
                                int64_t micro_batch_tokens = 64) {
  Subject subject(make_device, config, {.micro_batch_tokens = micro_batch_tokens});
  const int64_t vocabulary = config.vocabulary_size;
  const std::vector<TrainingRow> rows = training_rows(subject);
  const FlatBatch flat(rows);
  TrainingBatch batch = flat;
  const auto score = [&](Policy of, bool compare) { return subject.engine.scores(of, batch, 0.8f, subject.cancelled, compare); };

  // All tokens, most likely first.
  batch.top = vocabulary;
  const Scores found = score(Policy::current, false);
  std::vector<int32_t> all;
  int64_t at = 0;
  for (const TrainingRow& row : rows) {
    for (int64_t i = 0; i < row.sampled(); i++, at++) {
      const float* log_probs = &found.top_log_probs[size_t(at * vocabulary)];
      const int32_t* tokens = &found.top_tokens[size_t(at * vocabulary)];
      double sum = 0, entropy = 0, own = 0;
      for (int64_t j = 0; j < vocabulary; j++) {
        all.push_back(int32_t(j));
        sum += std::exp(double(log_probs[j])), entropy -= std::exp(double(log_probs[j])) * double(log_probs[j]);
        if (tokens[j] == row.tokens[size_t(row.spans[0].begin + i)]) own = log_probs[j];
        if (j == 0 || is_possible(log_probs[j - 1])) CHECK(j == 0 || log_probs[j] <= log_probs[j - 1], "token %d", int(j));
      }
      CHECK(std::abs(sum - 1) < 1e-5 && std::abs(entropy - found.entropies[size_t(at)]) < 1e-4, "sum %g, entropy %g", sum, entropy);
      CHECK(std::abs(own - found.log_probs[size_t(at)]) < 1e-5);
      std::vector<int32_t> sorted(tokens, tokens + vocabulary);
      std::sort(sorted.begin(), sorted.end());
      CHECK(std::equal(sorted.begin(), sorted.end(), all.end() - vocabulary), "each token once");
    }
  }

  // The same tokens, requested explicitly.
  batch.top_tokens = found.top_tokens.data();
  const Scores given = score(Policy::current, false);
  double worst = 0;
  for (size_t i = 0; i < given.top_log_probs.size(); i++) {
    if (!is_possible(found.top_log_probs[i])) CHECK(!is_possible(given.top_log_probs[i]));
    else worst = std::max(worst, std::abs(double(given.top_log_probs[i]) - found.top_log_probs[i]));
  }
  CHECK(worst < 1e-5, "log-probabilities differ by %g", worst);

  // Distance 0 to the same policy; to an earlier policy, the distance computed from both.
  CHECK_THROWS(score(Policy::current, true), "BAD_ARGUMENT");
  subject.engine.freeze_reference();
  const Scores same = score(Policy::current, true);
  CHECK(std::all_of(same.hellingers.begin(), same.hellingers.end(), [](float distance) { return distance == 0; }));
  std::vector<float> moved = subject.weights();
  for (size_t i = 0; i < moved.size(); i++) moved[i] += 0.02f * Subject::uniform(int64_t(i) + 55);
  subject.set_weights(moved);
  batch.top_tokens = all.data();
  const Scores now = score(Policy::current, true), then = score(Policy::reference, false);
  double most = 0;
  worst = 0;
  for (size_t i = 0; i < now.hellingers.size(); i++) {
    const size_t first = i * size_t(vocabulary);
    const double wanted = hellinger_of(&now.top_log_probs[first], &then.top_log_probs[first], vocabulary);
    most = std::max(most, wanted), worst = std::max(worst, std::abs(now.hellingers[i] - wanted));
  }
  CHECK(most > 0.01 && most < 1 && worst < 1e-5, "distances of up to %g differ by %g", most, worst);

  // The gradient by a sampled token is the same if it is passed as another token.
  const auto bound = bounds.slope > 0 ? 1e-5 : 0.02;
  std::vector<TrainingRow> weighed = rows, none = rows;
  std::vector<float> gradients;
  std::vector<int32_t> sampled;
  for (size_t r = 0; r < rows.size(); r++) {
    for (int64_t i = 0; i < rows[r].sampled(); i++) {
      gradients.push_back(Subject::uniform(int64_t(gradients.size())));
      sampled.push_back(rows[r].tokens[size_t(rows[r].spans[0].begin + i)]);
      weighed[r].gradients.push_back(gradients.back()), none[r].gradients.push_back(0);
    }
  }
  const std::vector<float> wanted = linear_gradients(subject, FlatBatch(weighed));
  const FlatBatch without(none);
  TrainingBatch elsewhere = without;
  elsewhere.top = 1, elsewhere.top_tokens = sampled.data(), elsewhere.top_gradients = gradients.data();
  CHECK(distance(linear_gradients(subject, elsewhere), wanted) < bound, "%g", distance(linear_gradients(subject, elsewhere), wanted));

  elsewhere.top = vocabulary + 1;
  CHECK_THROWS(linear_gradients(subject, elsewhere), "BAD_ARGUMENT");
  sampled.back() = int32_t(vocabulary), elsewhere.top = 1;
  CHECK_THROWS(linear_gradients(subject, elsewhere), "BAD_ARGUMENT");
}

}  // namespace gigpo::test
