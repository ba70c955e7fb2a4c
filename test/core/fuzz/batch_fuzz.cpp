// Batches to score and to train, as the binding hands them over: arrays have the lengths that it demands, and any contents.
#include "test/core/fuzz/engine_inputs.h"

namespace gigpo::test {

std::vector<Bytes> corpus() { return random_inputs(64, 500); }

// Owns the arrays of a batch, each in memory of its own, so that a sanitizer sees a read beyond its end.
class FuzzedBatch {
 public:
  explicit FuzzedBatch(Input& in) : odd_(in.below(4) == 0) {
    batch_.rows = in.below(4);
    images_.images = images_of(in, odd_);
    for (int64_t row = 0; row < batch_.rows; row++) add_row(in, row);
    if (odd_ && in.below(8) == 0) offsets_[0] = in.number<int32_t>(4);
    if (offsets_.back() < 0 || offsets_.back() > 4096) throw Error("BAD_ARGUMENT", "tokens has fewer elements.");
    tokens_.resize(size_t(offsets_.back()));
    for (int span = odd_ ? in.below(5) : 0; span > 0; span--) {
      const int32_t row = batch_.rows > 0 && in.below(12) != 0 ? in.below(int(batch_.rows)) : in.number<int32_t>(4);
      const int32_t begin = in.number<int32_t>(16);
      add_span(in, row, begin, in.number<int32_t>(8));
    }
    if (in.below(4) != 0) std::sort(rows_.begin(), rows_.end());
    batch_.spans = int64_t(rows_.size());
    batch_.tokens = tokens_.data(), batch_.row_offsets = offsets_.data();
    batch_.span_rows = rows_.data(), batch_.span_begins = begins_.data(), batch_.span_counts = counts_.data();
    if (in.below(4) == 0) batch_.constraints = constraints_.data();
    add_columns(in);
    if (images_.images.empty()) return;
    images_.check(batch_.rows);
    batch_.given_images = &images_;
  }
  FuzzedBatch(const FuzzedBatch&) = delete;

  // Columns are missing where their length cannot be that of the sampled tokens.
  bool has_columns() const { return batch_.advantages != nullptr; }
  const TrainingBatch& get() const { return batch_; }

 private:
  // A row of an image or none, and text, of which a part is sampled.
  void add_row(Input& in, int64_t row) {
    const size_t begin = tokens_.size();
    if (const int count = int(images_.images.size()); count > 0) {
      if (in.chance()) {
        const int32_t index = odd_ ? in.number<int32_t>(count) : in.below(count);
        if (index >= 0 && index < count) append_image(*images_.images[size_t(index)], tokens_);
        images_.indices.push_back(index);
      }
      images_.offsets.push_back(odd_ && in.below(8) == 0 ? in.number<int32_t>(3) : int32_t(images_.indices.size()));
    }
    const auto text = std::max(1, int(tokens_.size() - begin));
    for (int length = in.below(24); length > 0; length--) tokens_.push_back(token_of(in, odd_));
    const auto length = int(tokens_.size() - begin);
    if (length > text && in.below(4) != 0) {
      const int first = text + in.below(length - text);
      add_span(in, int32_t(row), first, 1 + in.below(length - first));
    }
    offsets_.push_back(odd_ && in.below(8) == 0 ? in.number<int32_t>(40) : int32_t(tokens_.size()));
  }

  void add_span(Input& in, int32_t row, int32_t begin, int32_t count) {
    rows_.push_back(row), begins_.push_back(begin), counts_.push_back(count);
    constraints_.push_back(in.below(4) == 0 ? small_grammar() : nullptr);
  }

  void add_columns(Input& in) {
    const int64_t sampled = batch_.sampled();
    if (sampled < 1 || sampled > 4096) return;
    const auto column = [&](std::vector<float>& values, bool log_probs) {
      for (int64_t i = 0; i < sampled; i++) values.push_back(in.below(24) == 0 ? in.take<float>() : (log_probs ? -0.05f : 0.02f) * float(in.byte()));
      return values.data();
    };
    batch_.advantages = column(advantages_, false), batch_.old_log_probs = column(old_, true), batch_.reference_log_probs = column(reference_, true);
    batch_.gradients = column(gradients_, false), batch_.entropy_gradients = column(entropy_gradients_, false);
    batch_.returns = column(returns_, false), batch_.old_values = column(old_values_, false);
    if (in.below(3) != 0) return;
    batch_.top = odd_ && in.below(4) == 0 ? std::max(1, in.take<int32_t>()) : 1 + in.below(4);
    if (batch_.top > 64) return;  // arrays of this length are not given
    for (int64_t i = 0; i < sampled * batch_.top; i++) top_.push_back(odd_ ? in.number<int32_t>(53) : in.below(53)), top_gradients_.push_back(0.1f);
    if (in.chance()) batch_.top_tokens = top_.data();
    batch_.top_gradients = top_gradients_.data();
  }

  const bool odd_;
  std::vector<int32_t> tokens_, offsets_{0}, rows_, begins_, counts_, top_;
  std::vector<float> advantages_, old_, reference_, gradients_, entropy_gradients_, returns_, old_values_, top_gradients_;
  std::vector<std::shared_ptr<TokenMasks>> constraints_;
  BatchImages images_{{}, {0}, {}};
  TrainingBatch batch_;
};

static TrainingLoss loss_of(Input& in, const TrainingBatch& batch) {
  TrainingLoss loss;
  loss.head = policy_loss();
  loss.head.mode = HeadMode(in.below(3) == 0 ? int(HeadMode::sft) : in.chance() ? int(HeadMode::policy) : int(HeadMode::linear));
  if (batch.top > 0) loss.head.mode = HeadMode::linear;
  if (in.below(6) == 0) loss.head.temperature = in.take<double>();
  loss.head.has_entropy_gradient = loss.head.mode == HeadMode::linear;
  loss.aggregation = Aggregation(in.below(6));
  loss.fixed_length = 1 + in.below(8);
  loss.ratio = in.chance() ? RatioLevel::token : RatioLevel::sequence;
  loss.unit = in.chance() ? Unit::segment : Unit::sequence;
  loss.skip_zero_advantage = in.chance();
  return loss;
}

static void use(Input& in, const TrainingBatch& batch, bool has_columns) {
  Subject& subject = fuzzed_subject();
  Engine& engine = subject.engine;
  const int kind = in.below(6);
  const float temperature = in.below(6) == 0 ? in.take<float>() : 0.8f;
  if (kind == 0) engine.scores(Policy::current, batch, temperature, subject.cancelled);
  if (kind == 1) engine.scores(Policy::reference, batch, temperature, subject.cancelled, in.chance());
  if (kind == 2) engine.critic().predict(engine.place(batch)->batch, subject.cancelled);
  if (!has_columns) return;
  if (kind == 3) engine.critic().forward_backward(engine.place(batch)->batch, 0.2, subject.cancelled);
  // The binding demands the tokens of a linear loss with others.
  if (kind > 3 && (batch.top == 0 || batch.top_tokens)) engine.forward_backward(batch, loss_of(in, batch), subject.cancelled);
}

}  // namespace gigpo::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gigpo;
  test::Input in(data, size);
  static const bool frozen = (test::fuzzed_subject().engine.freeze_reference(), true);
  try {
    const test::FuzzedBatch batch(in);
    test::use(in, batch.get(), frozen && batch.has_columns());
  } catch (const Error&) {
  }
  test::fuzzed_subject().engine.actor().clear_gradients();
  return 0;
}
