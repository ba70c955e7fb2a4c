// The engine on the CUDA device: the same checks as on the CPU, and the CPU's results in another number format. On a machine
// without a GPU it says why, and skips.
#include "test/core/critic_checks.h"
#include "test/core/engine_checks.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using test::DeviceFactory;
using test::Subject;

namespace {

#ifdef GIGPO_CUDA_EMULATOR
constexpr int64_t longest_prompt = 150, step_tokens = 64;
constexpr int optimizer_steps = 4;
#else
constexpr int64_t longest_prompt = 1500, step_tokens = 1024;
constexpr int optimizer_steps = 20;
#endif

DeviceFactory on_cuda(const CudaOptions& options) {
  return [=] { return make_cuda_device(options); };
}
DeviceFactory on_cpu() {
  return [] { return make_cpu_device(1); };
}

double cosine(const float* a, const float* b, int64_t count) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < count; i++) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

// Large enough that rounding errors average out as they do in a real model.
ModelConfig small_model(bool biases_and_tied, int64_t head_size) {
  ModelConfig c = test::tiny_model(biases_and_tied, head_size);
  c.vocabulary_size = 301, c.hidden_size = 192, c.intermediate_size = 320;
  return c;
}

// Log-probabilities and gradients beside the CPU's, from the same weights.
void agrees_with_the_cpu(const CudaOptions& options, const ModelConfig& config, const AdapterConfig& adapter,
                         double log_prob_bound, double cosine_bound) {
  const test::Setup setup{.adapter = adapter, .deviation = 0.08, .coarse_weights = true};
  Subject cpu(on_cpu(), config, setup), cuda(on_cuda(options), config, setup);
  const std::vector<test::TrainingRow> rows = test::training_rows(cpu);
  const auto wanted = test::log_probs_of(cpu, cpu.engine.policy(), rows);
  const auto found = test::log_probs_of(cuda, cuda.engine.policy(), rows);
  double worst = 0;
  for (size_t r = 0; r < rows.size(); r++) {
    for (size_t i = 0; i < wanted[r].size(); i++) worst = std::max(worst, std::abs(double(found[r][i]) - wanted[r][i]));
  }
  CHECK(worst < log_prob_bound, "log-probabilities differ by %g", worst);
  test::train(cpu, rows, test::policy_loss());
  test::train(cuda, rows, test::policy_loss());
  const std::vector<float> expected = cpu.gradients(), got = cuda.gradients();
  double least = 1;
  for (const Parameter& parameter : cpu.engine.transformer().trained()) {
    const double found_cosine = cosine(&expected[parameter.offset], &got[parameter.offset], parameter.size());
    least = std::min(least, found_cosine);
    CHECK(found_cosine > cosine_bound, "%s: cosine %g", parameter.name.c_str(), found_cosine);
  }
  std::printf("%s, %s: log-probabilities within %.2g of the CPU's, gradients' cosine at least %.6f\n",
              options.precision == Type::f32 ? "fp32" : "bf16", adapter ? "adapter" : "model", worst, least);
}

// Ten steps of AdamW end where the CPU's do.
void trains_as_the_cpu(const CudaOptions& options, Type moments, const ModelConfig& config, double bound) {
  Subject cpu(on_cpu(), config, {.moments = moments}), cuda(on_cuda(options), config, {.moments = moments});
  const std::vector<test::TrainingRow> rows = test::training_rows(cpu);
  for (Subject* subject : {&cpu, &cuda}) {
    for (int i = 0; i < 10; i++) {
      test::train(*subject, rows, test::policy_loss());
      subject->trainer.optimizer_step(subject->engine.trained(), {1e-3, 0.9, 0.95, 1e-8, 0.01, 1});
      subject->engine.weights_changed();
    }
  }
  const std::vector<float> wanted = cpu.weights(), found = cuda.weights();
  double difference = 0, moved = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += std::pow(double(found[i]) - wanted[i], 2), moved += std::pow(double(wanted[i]) - cpu.host[i], 2);
  }
  CHECK(std::sqrt(difference / moved) < bound, "%g of the way", std::sqrt(difference / moved));
}

// Whether steps of sampling are replayed or launched anew.
void replays_exactly(const CudaOptions& options, const ModelConfig& config) {
  std::vector<std::vector<Completion>> completions;
  for (const bool graphs : {false, true}) {
    CudaOptions with = options;
    with.graphs = graphs;
    Subject subject(on_cuda(with), config);
    std::vector<Completion> done;
    for (int round = 0; round < 2; round++) {
      for (SampleRequest request : test::sample_requests(config.vocabulary_size, longest_prompt)) {
        request.id += 100 * uint64_t(round);
        subject.generator.submit(std::move(request));
      }
      test::run_until_idle(subject, done);
    }
    std::sort(done.begin(), done.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
    completions.push_back(std::move(done));
  }
  CHECK(completions[0].size() == completions[1].size());
  for (size_t i = 0; i < completions[0].size(); i++) CHECK(test::same(completions[0][i], completions[1][i]), "%d", int(i));
}

// Values and the critic's gradients beside the CPU's, from the same weights.
void criticises_as_the_cpu(const CudaOptions& options, const ModelConfig& config, const AdapterConfig& adapter, double value_bound,
                           double cosine_bound) {
  const test::Setup setup{.adapter = adapter, .deviation = 0.08, .coarse_weights = true};
  test::CriticSubject cpu(on_cpu(), config, setup), cuda(on_cuda(options), config, setup);
  std::vector<test::TrainingRow> rows = test::training_rows(cpu);
  test::add_returns(cpu, rows);
  const std::vector<float> wanted = cpu.predict(rows), found = cuda.predict(rows);
  double worst = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    worst = std::max(worst, std::abs(double(found[i]) - wanted[i])), size = std::max(size, std::abs(double(wanted[i])));
  }
  CHECK(worst < value_bound * size, "values of up to %g differ by %g", size, worst);
  cpu.train(rows), cuda.train(rows);
  const std::vector<float> expected = cpu.gradients(), got = cuda.gradients();
  double least = 1;
  for (const Parameter& parameter : cpu.trained()) {
    const double found_cosine = cosine(&expected[parameter.offset], &got[parameter.offset], parameter.size());
    least = std::min(least, found_cosine);
    CHECK(found_cosine > cosine_bound, "%s: cosine %g", parameter.name.c_str(), found_cosine);
  }
  std::printf("%s, critic's %s: values within %.2g of the CPU's, gradients' cosine at least %.6f\n",
              options.precision == Type::f32 ? "fp32" : "bf16", adapter ? "adapter" : "model", worst, least);
}

void refuses_what_does_not_fit(const CudaOptions& options) {
  const auto device = make_cuda_device(options);
  CHECK_THROWS(device->allocate(size_t{1} << 50), "OUT_OF_MEMORY");
  device->release(device->allocate(1000));
}

void engine() {
  const CudaOptions fp32{Type::f32, true, false}, bf16{Type::bf16, true, false};
  const test::Bounds near{0, 2e-5, longest_prompt, step_tokens, optimizer_steps};
  const test::Bounds coarse{0, 0.15, longest_prompt, step_tokens, optimizer_steps};
  test::check_micro_batches(on_cuda(fp32), test::tiny_model(true), near);
  test::check_many_spans(on_cuda(fp32), test::tiny_model(false), near);
  test::check_shared_prefixes(on_cuda(fp32), test::tiny_model(true), near);
  test::check_generation(on_cuda(fp32), test::tiny_model(true), near);
  test::check_engine(on_cuda(bf16), test::tiny_model(false, 16), coarse);
  test::check_critic(on_cuda(fp32), test::tiny_model(true), near);
  test::check_critic(on_cuda(bf16), test::tiny_model(false, 16), coarse);
  for (const bool biases_and_tied : {false, true}) {
    const ModelConfig config = small_model(biases_and_tied, biases_and_tied ? 64 : 128);
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{8, 16}}) {
      agrees_with_the_cpu(fp32, config, adapter, 1e-4, 0.999999);
      agrees_with_the_cpu(bf16, config, adapter, 0.1, 0.999);
      criticises_as_the_cpu(fp32, config, adapter, 1e-4, 0.999999);
      // All of a value's gradient goes one way, and its rounding with it: nothing averages out over a vocabulary.
      criticises_as_the_cpu(bf16, config, adapter, 0.02, 0.998);
    }
  }
  trains_as_the_cpu(fp32, Type::f32, test::tiny_model(true), 1e-3);
  trains_as_the_cpu(fp32, Type::bf16, test::tiny_model(false), 0.05);
  replays_exactly(bf16, test::tiny_model(true, 16));
  refuses_what_does_not_fit(bf16);
}

}  // namespace

int main() { return test::on_card(std::initializer_list<test::Test>{{"engine", engine}}); }
