// Log-probabilities of what was sampled beside those that the trainer finds for it, in bf16 and with logits of up to ±32, where a
// bf16 logit may be off by 1/16, 6 % of a ratio.
#include "test/core/engine_checks.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using test::Subject;

namespace {

constexpr int64_t vocabulary = 304, hidden = 192;

// As a trained model has them: some logits far above the others.
void sharpen(Subject& subject) {
  const int64_t head = subject.engine.transformer().layout().head;
  for (int64_t i = head; i < head + vocabulary * hidden; i++) subject.host[size_t(i)] *= 8;
  subject.set_weights(subject.host);
}

// Replies to `count` prompts of `length` tokens and more, each token with its log-probability.
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

// A sequence of one token has the same hidden state in every pass, whatever stands beside it: what is sampled, scored and trained
// from it must have the log-probability that its logits in fp32 say.
void nothing_is_rounded(Subject& subject) {
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

// Sampled and trained tokens of longer sequences differ by what their hidden states do.
void little_is_left(Subject& subject) {
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

void sampled_as_trained() {
  ModelConfig config = test::tiny_model(false, 64);
  config.vocabulary_size = vocabulary, config.hidden_size = hidden, config.intermediate_size = 320;
  Subject subject([] { return make_cuda_device({.cublas = false}); }, config, {.deviation = 0.08, .coarse_weights = true});
  sharpen(subject);
  nothing_is_rounded(subject);
  little_is_left(subject);
}

}  // namespace

int main() { return test::on_card(std::initializer_list<test::Test>{{"sampled as trained", sampled_as_trained}}); }
