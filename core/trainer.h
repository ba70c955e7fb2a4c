// Losses and updates over rows of sampled spans: forward, the head's losses on the sampled tokens, backward, AdamW. Gradients
// accumulate over calls until `optimizer_step`. Rows are packed into micro-batches of bounded size; sums run over the whole
// batch, so the size of a micro-batch changes memory, and results in their last bits alone.
#pragma once
#include <atomic>
#include <functional>
#include <span>

#include "core/flat_buffer.h"
#include "core/grammar/logit_masks.h"
#include "core/kernels/token_log_probs.h"
#include "core/other_tokens.h"
#include "core/row_trees.h"
#include "core/training_batch.h"
#include "core/transformer.h"

namespace gigpo {

struct TrainingLoss {
  PolicyHeadOptions head;
  Aggregation aggregation = Aggregation::token_mean;
  int64_t fixed_length = 0;  // of Aggregation::sequence_mean_fixed_length
  RatioLevel ratio = RatioLevel::token;
  Unit unit = Unit::span;
  // Spans whose gradient is exactly zero (no advantage, and no other term in the loss) count in the loss's normalisation but
  // are not computed: the report is over the others. Not with one ratio a sequence.
  bool skip_zero_advantage = false;
};

// Of rows, each without its last token.
struct PassedTokens {
  int64_t computed = 0;  // that went through the model
  int64_t reused = 0;    // that did not, because another row begins with them
};

// Means are over the sampled tokens that were computed.
struct LossReport {
  double loss = 0;
  int64_t tokens = 0;
  PassedTokens passed;
  double entropy = 0, clip_fraction = 0, dual_clip_fraction = 0, kl = 0, policy_kl = 0, ratio = 0;
  // Under the weights as they were, of all sampled tokens of the batch as its columns are; NaN of those that were not computed.
  std::vector<float> log_probs;
};

struct StepReport {
  double gradient_norm;
  bool skipped;
};

struct OptimizerOptions {
  double learning_rate, beta1, beta2, epsilon, weight_decay, max_gradient_norm;
};

struct TrainerOptions {
  int64_t micro_batch_tokens = 2048;
  int64_t longest_row = 0;   // more tokens than these at once are refused; 0: as many as come
  Type moments = Type::f32;  // of AdamW; bf16 is rounded at random, so that small steps survive on average
  // What rows of one call have in common at their beginning is computed once. The order of sums, and so their last bits, then depends
  // on which rows stand together.
  bool share_prefixes = true;
};

class Trainer {
 public:
  // Activations lie in `arena`, which whoever computes at another time may use too.
  Trainer(Device& device, const Transformer& transformer, Arena& arena, const TrainerOptions& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Both throw Error BAD_ARGUMENT where a row is too long, and ABORTED between micro-batches once `cancelled` is set. A
  // forward_backward that throws clears the gradients, those of earlier calls too.
  LossReport forward_backward(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                              const std::atomic<bool>& cancelled);
  // With a reference, whose weights these are, also how far each distribution lies from its own.
  Scores scores(const PolicyTensors& weights, const TrainingBatch& batch, float temperature, const std::atomic<bool>& cancelled,
                const PolicyTensors* reference = nullptr);
  // Logits [tokens][vocabulary] after each token of one sequence.
  std::vector<float> logits(const PolicyTensors& weights, const std::vector<int32_t>& tokens);

  // A span whose tokens a micro-batch's hidden states are asked for.
  struct WantedSpan {
    const BatchRows::Row* row;
    const BatchRows::Span* span;
  };
  // Whose hidden states rows are passed for: a policy's, and a reference's beside it unless that is null.
  struct Models {
    PolicyTensors weights;
    const PolicyTensors* reference = nullptr;
  };
  // The hidden states [wanted][H] of these spans' tokens, one span after the other; `reference` is empty where there is none.
  struct Hidden {
    Tensor own, reference;
    const std::vector<WantedSpan>& spans;
  };
  // What stands on them: a loss, whose d loss / d hidden it returns, or what is only read, and then nothing. What it keeps on the
  // device lies in the arena.
  using RunHead = std::function<Tensor(const Hidden& hidden, Arena& arena)>;
  // Passes all rows forward, and backward where the head says so; `done` after each micro-batch. Throws as forward_backward does.
  PassedTokens each_pass(const Models& models, const BatchRows& rows, const std::atomic<bool>& cancelled, const RunHead& head,
                         const std::function<void()>& done);
  // Runs `train`. The gradient of half a batch is worth nothing, and must not reach the optimizer.
  template <class Train>
  auto or_clear(Train train) {
    try {
      return train();
    } catch (...) {
      clear_gradients();
      throw;
    }
  }
  // As what is trained is laid out.
  PolicyTensors gradient_tensors();

  // `trained`: the adapter's weights where there is one, else the model's. Leaves them as they are when the gradient's norm is
  // not finite. Clears the gradients.
  StepReport optimizer_step(Parameters& trained, const OptimizerOptions& options);
  void clear_gradients() {
    if (gradients_) gradients_->zero();
  }

  // As the layout of what is trained describes; allocated at first use. The moments are what a resumed run needs.
  FlatBuffer& gradients() { return buffer(gradients_, Type::f32); }
  FlatBuffer& first_moment() { return buffer(first_moment_, options_.moments); }
  FlatBuffer& second_moment() { return buffer(second_moment_, options_.moments); }
  int64_t steps = 0;  // optimizer steps so far, for AdamW's bias correction

  // Of so many tokens, or of one micro-batch that has more, results of the head wait on the device.
  static constexpr int64_t most_results = int64_t{1} << 17;

  // The most bytes that activations have taken.
  size_t peak_bytes() const { return arena_.peak(); }

 private:
  struct Tokens;    // what the head needs of those that were sampled
  // What it does with those of a micro-batch.
  struct HeadPass {
    const TrainingBatch& batch;
    const PolicyHeadOptions& options;
    const Hidden& hidden;
    std::span<const PolicyHeadRow> inputs;
    std::span<const int64_t> columns;     // where they stand in the batch
    std::vector<const TokenMask*> masks;  // of each row of logits, where there are any
    PolicyHeadResult* results;            // on the device, to be filled
    Scores* scores;                       // as each_token has it
  };
  int64_t most_tokens() const;
  int64_t most_together(int64_t longest) const;
  void check_length(int64_t tokens) const;
  // Runs all rows, then hands over each sampled token's column, what the head was given for it and what it found. What else is told
  // of tokens goes into `scores`, unless that is null.
  template <class Visit>
  PassedTokens each_token(const Models& models, const TrainingBatch& batch, const BatchRows& rows, const PolicyHeadOptions& options,
                          Scores* scores, const std::atomic<bool>& cancelled, Visit visit);
  void pass(const Models& models, const BatchRows& rows, std::span<const RowTree> trees, const RunHead& head);
  LossReport train(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                   const std::atomic<bool>& cancelled);
  LossReport train_on_sequences(const PolicyTensors& weights, const TrainingBatch& batch, const TrainingLoss& loss,
                                const std::atomic<bool>& cancelled);
  // d loss / d hidden, or nothing where it only scores.
  Tensor run_head(const Models& models, const HeadPass& pass, Arena& arena);
  FlatBuffer& buffer(std::unique_ptr<FlatBuffer>& data, Type type);

  Device& device_;
  const Transformer& transformer_;
  TrainerOptions options_;
  Arena& arena_;
  LogitMasker masker_{device_};
  Transformer::Kept kept_;
  std::unique_ptr<FlatBuffer> gradients_, first_moment_, second_moment_;
};

}  // namespace gigpo
