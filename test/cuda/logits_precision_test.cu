// Log-probabilities of the sampler against those of the trainer, in bf16 and with logits of up to ±32, where the
// rounding error of a bf16 logit is up to 1/16, 6 % of a ratio.
#include "test/core/engine_checks.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using test::Subject;

namespace {

constexpr int64_t vocabulary = 304, hidden = 192;

// Raises some logits far above the others, as in a trained model.
void sharpen(Subject& subject) {
  const int64_t head = subject.engine.transformer().layout().head;
  for (int64_t i = head; i < head + vocabulary * hidden; i++) subject.host[size_t(i)] *= 8;
  subject.set_weights(subject.host);
}

// Sampled completions to `count` prompts of at least `length` tokens, each token with its log-probability.
std::vector<test::TrainingRow> sampled_rows(Subject& subject, uint32_t count, int64_t length, int64_t reply) {
  std::vector<SampleRequest> requests(count);
  for (uint32_t i = 0; i < count; i++) {
    SampleRequest& request = requests[i];
    request.id = i, request.key = {i, 5}, request.max_tokens = reply;
    request.prompt = test::random_tokens(length == 1 ? 1 : length + i, i, vocabulary);
    subject.engine.submit(request);
  }
  std::vector<Completion> done;
  test::run_until_idle(subject, done);
  std::vector<test::TrainingRow> rows;
  for (const Completion& each : done) {
    rows.push_back(test::step_row(requests[each.id].prompt, each.tokens, 1));
    rows.back().old_log_probs = each.log_probs;
  }
  return rows;
}

struct Mismatch {
  double sum = 0, most = 0;
  int64_t count = 0;

  void add(double a, double b) { sum += std::abs(a - b), most = std::max(most, std::abs(a - b)), count++; }
};

// A sequence of one token has the same hidden state in every pass, in any batch: sampling, scoring and training must
// give the log-probability computed from its fp32 logits.
void check_single_tokens(Subject& subject) {
  const std::vector<test::TrainingRow> rows = sampled_rows(subject, 24, 1, 1);
  const auto scored = test::log_probs_of(subject, rows, 1);
  const LossReport report = test::train(subject, rows, TrainingLoss{});
  double highest = 0;
  for (size_t r = 0; r < rows.size(); r++) {
    const std::vector<float> logits = subject.engine.logits({rows[r].tokens[0]});
    const double top = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const float z : logits) total += std::exp(z - top);
    const double wanted = double(logits[size_t(rows[r].tokens[1])]) - top - std::log(total);
    highest = std::max(highest, top);
    for (const float found : {rows[r].old_log_probs[0], scored[r][0], report.log_probs[r]}) {
      CHECK(std::abs(found - wanted) < 1e-5, "row %d: %g, not %g", int(r), double(found), wanted);
    }
  }
  CHECK(highest > 16, "the highest logit is %g", highest);
}

// Sampler and trainer differ on longer sequences only by their hidden states.
void check_longer_sequences(Subject& subject) {
  const std::vector<test::TrainingRow> rows = sampled_rows(subject, 12, 4, 16);
  const LossReport report = test::train(subject, rows, TrainingLoss{});
  Mismatch mismatch;
  auto trained = report.log_probs.begin();
  for (const test::TrainingRow& row : rows) {
    for (const float sampled : row.old_log_probs) mismatch.add(sampled, *trained++);
  }
  std::printf("sampler and trainer: |log p - log p| %.5f on average, at most %.5f\n", mismatch.sum / double(mismatch.count), mismatch.most);
  CHECK(mismatch.count == 192 && mismatch.most < 0.3);
}

void test_sampler_and_trainer_agree() {
  ModelConfig config = test::tiny_model(false, 64);
  config.vocabulary_size = vocabulary, config.hidden_size = hidden, config.intermediate_size = 320;
  Subject subject([] { return make_cuda_device({.cublas = false}); }, config, {.deviation = 0.08, .coarse_weights = true});
  sharpen(subject);
  check_single_tokens(subject);
  check_longer_sequences(subject);
}

}  // namespace

int main() { return test::on_card(std::initializer_list<test::Test>{{"sampler and trainer agree", test_sampler_and_trainer_agree}}); }
