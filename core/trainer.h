// Losses and updates over rows (prompt, reply): forward, the head's losses on the reply tokens, backward, AdamW. Gradients
// accumulate over calls until `optimizer_step`. Rows are packed into micro-batches of bounded size; sums run over the whole
// batch, so the size of a micro-batch changes memory and not the result.
#pragma once
#include <atomic>

#include "core/flat_buffer.h"
#include "core/kernels/token_log_probs.h"
#include "core/transformer.h"

namespace gigpo {

// `reply` tokens at the end of `tokens` are what the loss sees. Arrays are [reply] or empty.
struct TrainingRow {
  std::vector<int32_t> tokens;
  int64_t reply = 0;
  float advantage = 0;
  float weight = 1;  // of each reply token in the loss; set by `forward_backward`
  std::vector<float> old_log_probs, reference_log_probs;
  std::vector<float> gradients;  // d loss / d log p, for HeadMode::linear

  int64_t prompt() const { return int64_t(tokens.size()) - reply; }
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
  Type moments = Type::f32;  // of AdamW; bf16 is rounded at random, so that small steps survive on average
  Region* region = nullptr;  // for activations, shared with others; null: memory of its own
};

class Trainer {
 public:
  Trainer(Device& device, const Transformer& transformer, const TrainerOptions& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Both throw Error ABORTED between micro-batches once `cancelled` is set. A forward_backward that throws clears the
  // gradients, those of earlier calls too.
  // With `skip_zero_advantage`, rows whose gradient is exactly zero (no advantage, and no other term in the loss) count in
  // the loss's normalisation but are not computed: the sums are over the others.
  PolicyHeadSums forward_backward(const PolicyTensors& weights, std::vector<TrainingRow> rows,
                                  const PolicyHeadOptions& options, Aggregation aggregation,
                                  bool skip_zero_advantage, const std::atomic<bool>& cancelled);
  std::vector<std::vector<float>> log_probs(const PolicyTensors& weights, const std::vector<TrainingRow>& rows,
                                            float temperature, const std::atomic<bool>& cancelled);
  // Logits [tokens][vocabulary] after each token of one sequence.
  std::vector<float> logits(const PolicyTensors& weights, const std::vector<int32_t>& tokens);
  // `trained`: the adapter's weights where there is one, else the model's. Leaves them as they are when the gradient's norm is
  // not finite. Clears the gradients.
  StepReport optimizer_step(const Parameters& trained, const OptimizerOptions& options);
  void clear_gradients() { gradients().zero(); }

  // As the layout of what is trained describes; allocated at first use. The moments are what a resumed run needs.
  FlatBuffer& gradients() { return buffer(gradients_, Type::f32); }
  FlatBuffer& first_moment() { return buffer(first_moment_, options_.moments); }
  FlatBuffer& second_moment() { return buffer(second_moment_, options_.moments); }
  int64_t steps = 0;  // optimizer steps so far, for AdamW's bias correction

  // The most bytes that activations have taken.
  size_t peak_bytes() const { return arena_.peak(); }

 private:
  // Rows with the same prompt, which is computed once for all of them.
  struct Bundle {
    std::vector<const TrainingRow*> rows;
    int64_t tokens;
  };
  struct HeadRows;  // what the head needs of one micro-batch, and what it found
  std::vector<Bundle> share_prompts(const std::vector<TrainingRow>& rows) const;
  // Runs all rows and hands over each micro-batch's results.
  template <class Visit>
  void each_micro_batch(const PolicyTensors& weights, const std::vector<TrainingRow>& rows,
                        const PolicyHeadOptions& options, const std::atomic<bool>& cancelled, Visit visit);
  void run(const PolicyTensors& weights, const Bundle* bundles, size_t count, const PolicyHeadOptions& options,
           HeadRows& head);
  // Fills `results` (device memory) and, when training, returns d loss / d hidden.
  Tensor run_head(const PolicyTensors& weights, Tensor hidden, const PolicyHeadRow* inputs,
                  const PolicyHeadOptions& options, PolicyHeadResult* results);
  PolicyTensors gradient_tensors();
  FlatBuffer& buffer(std::unique_ptr<FlatBuffer>& data, Type type);

  Device& device_;
  const Transformer& transformer_;
  TrainerOptions options_;
  Arena arena_;
  Transformer::Activations kept_;
  std::unique_ptr<FlatBuffer> gradients_, first_moment_, second_moment_;
};

}  // namespace gigpo
