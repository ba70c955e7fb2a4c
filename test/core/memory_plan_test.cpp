// Planned memory against the peak that the system reports, for a process that trains, samples until its cache is full,
// and has a reference policy. Each shape runs in a separate process.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "test/core/engine_checks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GIGPO_SANITIZED 1  // sanitizers allocate memory of their own
#endif

using namespace gigpo;

namespace {

struct Shape {
  const char* name;
  bool biases_and_tied;
  int64_t hidden, layers, vocabulary, micro_batch_tokens, longest_row, cache_bytes;
  AdapterConfig adapter;
  Recompute recompute;
  Purpose purpose;
  Type precision = Type::f32;
};

ModelConfig config_of(const Shape& shape) {
  ModelConfig c = test::tiny_model(shape.biases_and_tied, 32);
  c.vocabulary_size = shape.vocabulary, c.hidden_size = shape.hidden, c.intermediate_size = 3 * shape.hidden;
  c.layers = shape.layers, c.heads = shape.hidden / 32, c.key_value_heads = c.heads / 2, c.max_positions = 512;
  return c;
}

int64_t of_status(const char* name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == name && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

std::vector<int32_t> tokens_of(const ModelConfig& config, int64_t count, uint32_t stream) {
  return test::random_tokens(count, stream, config.vocabulary_size);
}

void sample_until_full(Engine& engine, const ModelConfig& config) {
  for (uint32_t i = 0; i < 18; i++) engine.submit({i, tokens_of(config, 500, i), 4, 1, {}, {1, i}});
  std::vector<Completion> done;
  while (engine.sampling()) engine.sample_step(done);
}

void train_once(Engine& engine, const ModelConfig& config, int64_t longest) {
  const std::atomic<bool> cancelled = false;
  std::vector<test::TrainingRow> rows;
  const int64_t tokens = std::max(engine.actor().options().trainer.micro_batch_tokens, longest);
  for (int64_t left = tokens; left > 0; left -= 500)
    rows.push_back(test::step_row({int32_t(left % 50)}, tokens_of(config, std::min<int64_t>(left, 500), uint32_t(left)), 1));
  PolicyHeadOptions options;
  options.mode = HeadMode::sft;
  engine.forward_backward(test::FlatBatch(rows), {.head = options}, cancelled);
  engine.actor().optimizer_step({1e-4, 0.9, 0.99, 1e-8, 0, 1});
}

// Runs in the process of the shape.
bool measure(const Shape& shape) {
  const ModelConfig config = config_of(shape);
  auto device = make_cpu_device(2, shape.precision);
  EngineOptions requested;
  requested.micro_batch_tokens = shape.micro_batch_tokens, requested.longest_row = shape.longest_row, requested.cache_bytes = shape.cache_bytes;
  requested.step_tokens = 512, requested.adapter = shape.adapter, requested.recompute = shape.recompute;
  const auto [options, plan] = fit_options(config, requested, device->traits(), shape.purpose, int64_t{1} << 40);
  const int64_t before = of_status("VmRSS:");
  Engine engine(std::move(device), config, options);
  const std::vector<float> zeros(1 << 12);  // a large array would count, and change how the allocator caches freed memory
  for (int64_t at = 0, size = engine.transformer().layout().size; at < size; at += int64_t(zeros.size()))
    engine.actor().write(Buffer::weights, at, std::span(zeros).first(std::min(zeros.size(), size_t(size - at))));
  if (shape.purpose.trained) train_once(engine, config, shape.longest_row);
  sample_until_full(engine, config);
  if (shape.purpose.reference) {
    engine.freeze_reference();
    const std::vector<test::TrainingRow> rows{test::step_row(tokens_of(config, 9, 1), tokens_of(config, 9, 2))};
    const std::atomic<bool> cancelled = false;
    engine.scores(Policy::reference, test::FlatBatch(rows), 1, cancelled);
  }
  if (shape.purpose.trained) train_once(engine, config, shape.longest_row);  // the arena is one block by now
  const double taken = double(of_status("VmHWM:") - before), planned = double(plan.total());
  // Lists, threads and their scratch memory are not part of the plan.
  return CHECK(std::abs(planned - taken) < 0.04 * taken + 6e6, "%s: planned %.1f MB, used %.1f MB (%s)", shape.name, planned / 1e6,
               taken / 1e6, describe(plan).c_str());
}

const Shape shapes[] = {
    {"all weights", true, 384, 4, 8000, 512, 0, 24 << 20, {}, Recompute::none, {}},
    {"untied, with norms and recomputation", false, 384, 4, 8000, 1000, 0, 48 << 20, {}, Recompute::mlp, {}},
    {"an adapter and a reference policy", true, 512, 4, 8000, 512, 0, 24 << 20, {16, 32}, Recompute::norms, {.reference = true}},
    {"a reference policy", true, 384, 4, 4000, 512, 0, 24 << 20, {}, Recompute::block, {.reference = true}},
    {"rows longer than a micro-batch", true, 256, 6, 4000, 64, 500, 24 << 20, {}, Recompute::none, {}},
    {"sampling only", true, 512, 4, 8000, 512, 0, 64 << 20, {}, Recompute::none, {.trained = false}},
    {"sampling only, in bf16", true, 512, 8, 8000, 512, 0, 32 << 20, {}, Recompute::none, {.trained = false}, Type::bf16},
    {"bf16, all weights", true, 384, 4, 8000, 512, 0, 24 << 20, {}, Recompute::none, {}, Type::bf16},
    {"bf16, an adapter and a reference policy", true, 512, 4, 8000, 1000, 0, 24 << 20, {16, 32}, Recompute::norms, {.reference = true}, Type::bf16},
    {"bf16, many tokens at a time", true, 384, 4, 8000, 4000, 0, 24 << 20, {}, Recompute::none, {}, Type::bf16},
    {"bf16, rows longer than a micro-batch", true, 256, 6, 4000, 64, 500, 24 << 20, {}, Recompute::none, {}, Type::bf16},
};

}  // namespace

int main() {
#ifdef GIGPO_SANITIZED
  std::printf("skipped: the memory of sanitizers would be measured, too\n");
  return 0;
#endif
  for (const Shape& shape : shapes) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const bool ok = measure(shape);
      std::fflush(stdout);
      _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s", shape.name);
  }
  return test::report();
}
