// The engine on the CUDA device: the same checks as on the CPU, and comparison with the CPU. Without a GPU it is
// skipped, with the reason.
#include <cstdlib>
#include <optional>

#include "test/core/agreement_checks.h"
#include "test/cuda/fake_library.h"
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

// After ten steps of AdamW the weights agree with the CPU's.
void check_training_agrees_with_the_cpu(const CudaOptions& options, Type moments, const ModelConfig& config, double bound) {
  Subject cpu(on_cpu(), config, {.moments = moments}), cuda(on_cuda(options), config, {.moments = moments});
  const std::vector<test::TrainingRow> rows = test::training_rows(cpu);
  for (Subject* subject : {&cpu, &cuda}) {
    for (int i = 0; i < 10; i++) {
      test::train(*subject, rows, test::policy_loss());
      subject->engine.actor().optimizer_step({1e-3, 0.9, 0.95, 1e-8, 0.01, 1});
    }
  }
  const std::vector<float> wanted = cpu.weights(), found = cuda.weights();
  double difference = 0, moved = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    difference += std::pow(double(found[i]) - wanted[i], 2), moved += std::pow(double(wanted[i]) - cpu.host[i], 2);
  }
  CHECK(std::sqrt(difference / moved) < bound, "the weights differ by %g of their change", std::sqrt(difference / moved));
}

// Replayed sampling steps give the same results as launched ones.
void check_replay_is_exact(const CudaOptions& options, const ModelConfig& config) {
  std::vector<std::vector<Completion>> completions;
  for (const bool graphs : {false, true}) {
    CudaOptions with = options;
    with.graphs = graphs;
    Subject subject(on_cuda(with), config);
    std::vector<Completion> done;
    for (int round = 0; round < 2; round++) {
      for (SampleRequest request : test::sample_requests(config.vocabulary_size, longest_prompt, test::small_grammar())) {
        request.id += 100 * uint64_t(round);
        subject.engine.submit(std::move(request));
      }
      test::run_until_idle(subject, done);
    }
    std::sort(done.begin(), done.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
    completions.push_back(std::move(done));
  }
  CHECK(completions[0].size() == completions[1].size());
  for (size_t i = 0; i < completions[0].size(); i++) CHECK(test::same(completions[0][i], completions[1][i]), "%d", int(i));
}

void check_out_of_memory(const CudaOptions& options) {
  const auto device = make_cuda_device(options);
  CHECK_THROWS(device->allocate(size_t{1} << 50), "OUT_OF_MEMORY");
  device->release(device->allocate(1000));
}

// Device::without_library states why the library is not used.
void check_without_library(const CudaOptions& with, const CudaOptions& without) {
  const char* const chosen = std::getenv("GIGPO_CUBLASLT");
  const std::optional<std::string> before = chosen ? std::optional<std::string>(chosen) : std::nullopt;
  CHECK(make_cuda_device(without)->without_library().empty());  // not requested
#ifdef GIGPO_CUDA_EMULATOR
  CHECK(make_cuda_device(with)->without_library().empty(), "%s", make_cuda_device(with)->without_library().c_str());
  CHECK(make_cuda_device(with)->library().find("cuBLASLt ") == 0 && make_cuda_device(without)->library().empty());
#endif
  setenv("GIGPO_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
  const std::string reason = make_cuda_device(with)->without_library();
  CHECK(reason.find("/nowhere/libcublasLt.so.13") != std::string::npos, "%s", reason.c_str());
  before ? setenv("GIGPO_CUBLASLT", before->c_str(), 1) : unsetenv("GIGPO_CUBLASLT");
}

#ifdef GIGPO_CUDA_EMULATOR
// All micro-batches of a batch are queued before the host waits for the first.
void check_one_wait_per_batch(const CudaOptions& options) {
  Subject subject(on_cuda(options), test::tiny_model(true), {.micro_batch_tokens = 1});
  const std::vector<test::TrainingRow> rows = test::training_rows(subject);
  test::train(subject, rows, test::policy_loss());  // memory grows
  const size_t before = cuda::emulator::waits;
  test::train(subject, rows, test::policy_loss());
  CHECK(rows.size() > 2 && cuda::emulator::waits == before + 1, "%d waits", int(cuda::emulator::waits - before));
}

// A token is read once the next step has been queued: the host waits once per step, and never for all queued work.
void check_one_wait_per_step(const CudaOptions& options) {
  Subject subject(on_cuda(options), test::tiny_model(true));
  std::vector<Completion> done;
  for (SampleRequest request : test::sample_requests(53, 20)) {
    request.max_tokens = 40, request.stop_tokens.clear();
    subject.engine.submit(std::move(request));
  }
  const GeneratorCounts& counts = *subject.engine.counts();
  const auto step = [&] { subject.engine.sample_step(done); };
  step();
  CHECK(counts.sampled == 0, "%d tokens", int(counts.sampled));
  for (int i = 0; i < 4; i++) step();  // memory grows, and steps are recorded
  const size_t before = cuda::emulator::waits;
  for (int i = 0; i < 10; i++) step();
  CHECK(cuda::emulator::waits == before + 10, "%d waits", int(cuda::emulator::waits - before));
}
#endif

// Options with the library (`fp32` and `bf16`) and without; each check uses one of them, and checks that require
// identical bits use this package's kernels. In the emulator the library is the fake one.
void engine() {
  const CudaOptions fp32{Type::f32}, bf16{Type::bf16}, own_fp32{Type::f32, true, false}, own_bf16{Type::bf16, true, false};
  const test::Bounds near{0, 2e-5, longest_prompt, step_tokens, optimizer_steps};
  const test::Bounds coarse{0, 0.15, longest_prompt, step_tokens, optimizer_steps};
  test::part([&] { check_without_library(bf16, own_bf16); });
#ifdef GIGPO_CUDA_EMULATOR
  test::part([&] { check_one_wait_per_batch(bf16); });
  test::part([&] { check_one_wait_per_step(bf16); });
#endif
  test::part([&] { test::check_micro_batches(on_cuda(own_fp32), test::tiny_model(true), near); });
  test::part([&] { test::check_many_spans(on_cuda(fp32), test::tiny_model(false), near); });
  test::part([&] { test::check_shared_prefixes(on_cuda(fp32), test::tiny_model(true), near); });
  test::part([&] { test::check_generation(on_cuda(own_fp32), test::tiny_model(true), near); });
  test::part([&] { test::check_many_spans(on_cuda(own_fp32), test::windowed_model(true), near); });
  test::part([&] { test::check_generation(on_cuda(own_bf16), test::windowed_model(false, 16), coarse); });
  test::part([&] { test::check_many_spans(on_cuda(own_fp32), test::gemma_model(true), near); });
  test::part([&] { test::check_generation(on_cuda(own_bf16), test::gemma_model(false, 16), coarse); });
  test::part([&] { test::check_streams(on_cuda(own_fp32), test::tiny_model(true), near); });
  test::check_engine(on_cuda(bf16), test::tiny_model(false, 16), coarse);
  test::check_critic(on_cuda(own_fp32), test::tiny_model(true), near);
  test::check_critic(on_cuda(bf16), test::tiny_model(false, 16), coarse);
  for (const bool biases_and_tied : {false, true}) {
    const ModelConfig config = test::small_model(biases_and_tied, biases_and_tied ? 64 : 128);
    const CudaOptions& exact = biases_and_tied ? fp32 : own_fp32;
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{8, 16}}) {
      const CudaOptions& rounded = bool(adapter) == biases_and_tied ? bf16 : own_bf16;
      test::part([&] { test::compare_with_the_cpu(on_cuda(exact), config, adapter, 1e-4, 0.999999); });
      test::part([&] { test::compare_with_the_cpu(on_cuda(rounded), config, adapter, 0.1, 0.999); });
      test::part([&] { test::compare_critic_with_the_cpu(on_cuda(exact), config, adapter, 1e-4, 0.999999); });
      // The gradient of a value has one direction, and so has its rounding error: nothing averages out over a
      // vocabulary.
      test::part([&] { test::compare_critic_with_the_cpu(on_cuda(rounded), config, adapter, 0.02, 0.998); });
    }
  }
  for (const int64_t head_size : {64, 128}) {
    ModelConfig config = test::small_model(false, head_size);  // biases of keys have no gradient without rotary positions
    config.kinds = test::windowed_model(false).kinds;
    test::part([&] { test::compare_with_the_cpu(on_cuda(fp32), config, {}, 1e-4, 0.999999); });
    test::part([&] { test::compare_with_the_cpu(on_cuda(own_bf16), config, {}, 0.1, 0.999); });
  }
  for (const int64_t head_size : {64, 256}) {  // 256: head size of Gemma 3, which the general kernels compute
    const ModelConfig config = test::small_gemma_model(head_size);
    test::part([&] { test::compare_with_the_cpu(on_cuda(own_fp32), config, {}, 1e-4, 0.999999); });
    test::part([&] { test::compare_with_the_cpu(on_cuda(bf16), config, {8, 16}, 0.1, 0.999); });
  }
  test::part([&] { check_training_agrees_with_the_cpu(fp32, Type::f32, test::tiny_model(true), 1e-3); });
  test::part([&] { check_training_agrees_with_the_cpu(own_fp32, Type::bf16, test::tiny_model(false), 0.05); });
  test::part([&] { check_replay_is_exact(bf16, test::tiny_model(true, 16)); });
  test::part([&] { check_replay_is_exact(own_bf16, test::tiny_model(true, 16)); });
  test::part([&] { check_out_of_memory(bf16); });
}

}  // namespace

int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
#ifdef GIGPO_CUDA_EMULATOR
  const test::FakeLibrary fake(argc > 1 ? argv[1] : "");
  if (!fake) return test::report();
  test::choose_library(argv[1]);
#endif
  return test::on_card(std::initializer_list<test::Test>{{"engine", engine}});
}
