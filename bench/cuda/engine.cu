// The engine on a card, each figure beside its floor:
//
//   bench_cuda_engine [--model 1.5b] [--batch 128] [--no-cublas | --library-samples] [train] [head] [log-probs] [prefill] [decode] [iteration] [full-7b] [lora-7b]
//
// Without names: all but the last two, which need a large card. bench/peers/on_card.py measures PyTorch beside it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "bench/cuda/card.h"
#include "bench/cuda/shapes.h"
#include "core/device_report.h"
#include "core/memory_plan.h"
#include "cuda/kernels.h"
#include "test/core/training_rows.h"

using namespace gigpo;
using namespace gigpo::bench;
using test::TrainingRow;

namespace {

const std::atomic<bool> never = false;
std::vector<int32_t> tokens_of(int64_t count, uint32_t stream, const ModelConfig& c) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; i++) {
    tokens.push_back(int32_t(philox({9, stream}, uint32_t(i), 0, 0, 0).word[0] % uint32_t(c.vocabulary_size)));
  }
  return tokens;
}

std::vector<TrainingRow> rows_of(int64_t count, int64_t length, int64_t reply, const ModelConfig& c) {
  std::vector<TrainingRow> rows(count);
  for (int64_t r = 0; r < count; r++) {
    rows[r].tokens = tokens_of(length, uint32_t(r), c);
    rows[r].spans = {{length - reply, reply}};
    rows[r].advantages.assign(reply, r % 2 ? 1.f : -1.f);
    rows[r].old_log_probs.assign(reply, -10.f);
  }
  return rows;
}

struct Bench {
  std::string model_name;
  ModelConfig config;
  CudaOptions device_options;
  Card card;
  int64_t batch = 128;  // of prefill and decode
  bool tiny() const { return model_name == "tiny"; }

  std::unique_ptr<Engine> open(EngineOptions options, bool trained, int64_t limit = INT64_MAX) const {
    auto device = make_cuda_device(device_options);
    const auto [fitted, plan] =
        fit_options(config, options, device->traits(), {.trained = trained}, std::min(limit, int64_t(device->available())));
    std::printf("  plan: %s\n", describe(plan).c_str());
    auto engine = std::make_unique<Engine>(std::move(device), config, fitted);
    fill_weights(*engine);
    return engine;
  }
};

EngineOptions training_options(int64_t tokens) {
  EngineOptions options;
  options.micro_batch_tokens = tokens, options.cache_bytes = int64_t{1} << 30, options.step_tokens = 0;
  return options;
}

void report_training(const Bench& bench, const char* what, double seconds, double tokens, double operations) {
  const double rate = operations / seconds, measured = bench.card.operations_per_second;
  std::printf("  %s: %.1f ms, %.0f tokens/s, MFU %.1f %% of the datasheet's %.0f TFLOP/s, %.1f %% of the %.0f of this card's products, "
              "whose floor is %.1f ms\n",
              what, 1e3 * seconds, tokens / seconds, 100 * rate / datasheet_operations, datasheet_operations / 1e12, 100 * rate / measured,
              measured / 1e12, 1e3 * operations / measured);
}

void bench_train(const Bench& bench) {
  const int64_t length = bench.tiny() ? 32 : 1024, count = bench.tiny() ? 4 : 16, tokens = length * count;
  for (const bool all : {true, false}) {
    const int64_t reply = all ? length - 1 : length * 3 / 20;
    std::printf("train %s: %d rows of %d tokens, %d of each in the loss\n", bench.model_name.c_str(), int(count), int(length), int(reply));
    const auto engine = bench.open(training_options(tokens), true);
    const std::vector<TrainingRow> rows = rows_of(count, length, reply, bench.config);
    const double operations = training_operations(bench.config, double(tokens), double(count * reply), double(length));
    const double pass = median_seconds([&] {
      engine->forward_backward(test::FlatBatch(rows), {}, never);
    });
    report_training(bench, "forward and backward", pass, double(tokens), operations);
    const double step = median_seconds([&] {
      engine->actor().optimizer_step({1e-6, 0.9, 0.999, 1e-8, 0.01, 1});
      wait(engine->device(), engine->actor().weights().model.data);
    });
    const double bytes = double(engine->transformer().trained_size()) * (5 * 4 + 3 * 4 + 2);  // with the norm and clearing
    std::printf("  AdamW: %.1f ms, floor %.1f ms\n", 1e3 * step, 1e3 * bytes / bench.card.bytes_per_second);
    std::printf("  activations took %.2f GB\n", double(engine->peak_bytes()) / 1e9);
  }
}

void bench_head(const Bench& bench) {
  const int64_t rows = bench.tiny() ? 64 : 8192, h = bench.config.hidden_size, v = bench.config.vocabulary_size;
  const auto device = make_cuda_device(bench.device_options);
  const auto matrix = [&](int64_t r, int64_t c, Type type) {
    void* data = device->allocate(r * c * bytes_of(type));
    device->zero(data, r * c * bytes_of(type));
    return Tensor{data, type, r, c, c};
  };
  const Tensor hidden = matrix(rows, h, Type::bf16), table = matrix(v, h, Type::bf16), d_table = matrix(v, h, Type::f32);
  const Tensor logits = matrix(rows, v, Type::f32), d_logits = device->gradient_of_logits(logits), d_hidden = matrix(rows, h, Type::bf16);
  fill_with_noise(*device, hidden.data, rows * h);
  fill_with_noise(*device, table.data, v * h);
  std::vector<PolicyHeadRow> host(rows, {1, 1e-4f, 1.f, -10.f, 0.f, 0.f, 0.f});
  auto* inputs = static_cast<PolicyHeadRow*>(device->allocate(rows * sizeof(PolicyHeadRow)));
  auto* results = static_cast<PolicyHeadResult*>(device->allocate(rows * sizeof(PolicyHeadResult)));
  device->upload(inputs, host.data(), rows * sizeof(PolicyHeadRow));
  const auto row_kernel = [&] { device->policy_head(logits, inputs, {}, results); };
  const double whole = median_seconds([&] {
    device->matmul(hidden, false, table, true, logits, false);
    row_kernel();
    device->matmul(d_logits, true, hidden, false, d_table, true);
    device->matmul(d_logits, false, table, false, d_hidden, false);
    wait(*device, d_hidden.data);
  });
  const double kernel = median_seconds([&] { row_kernel(), wait(*device, results); });
  const double operations = 6.0 * double(rows) * double(h) * double(v), bytes = 6.0 * double(rows) * double(v);
  std::printf("head %d x %d x %d, forward and backward: %.2f ms = %.0f TFLOP/s, floor %.2f ms; extra memory %.2f GB\n", int(rows), int(h),
              int(v), 1e3 * whole, operations / whole / 1e12,
              1e3 * (operations / bench.card.operations_per_second + bytes / bench.card.bytes_per_second),
              double(rows) * double(v) * 4 / 1e9);
  std::printf("  the row kernel: %.2f ms, floor %.2f ms (one read, one write)\n", 1e3 * kernel, 1e3 * bytes / bench.card.bytes_per_second);
}

void bench_log_probs(const Bench& bench) {
  const int64_t rows = bench.tiny() ? 64 : 8192, v = bench.config.vocabulary_size;
  const auto device = make_cuda_device(bench.device_options);
  void* logits = device->allocate(rows * v * 2);
  fill_with_noise(*device, logits, rows * v, 0x3F80);
  auto* tokens = static_cast<int32_t*>(device->allocate(rows * sizeof(int32_t)));
  device->zero(tokens, rows * sizeof(int32_t));
  auto* out = static_cast<float*>(device->allocate(2 * rows * sizeof(float)));
  wait(*device, tokens);
  const double seconds = seconds_a_call([&](int) {
    cuda::token_log_probs(rows, v, static_cast<const __nv_bfloat16*>(logits), tokens, 1, out, out + rows, nullptr);
  });
  const double rate = double(rows) * double(v) * 2 / seconds;
  std::printf("log-probs of %d rows: %.3f ms, %.2f TB/s = %.1f %% of the copy's %.2f TB/s\n", int(rows), 1e3 * seconds, rate / 1e12,
              100 * rate / bench.card.bytes_per_second, bench.card.bytes_per_second / 1e12);
}

SampleRequest request_of(uint64_t id, std::vector<int32_t> prompt, int64_t max_tokens) {
  SampleRequest request;
  request.id = id, request.prompt = std::move(prompt), request.max_tokens = max_tokens, request.key = {uint32_t(id), 7};
  return request;
}

void bench_sampling(const Bench& bench, bool decode) {
  const int64_t batch = bench.tiny() ? 8 : bench.batch, context = bench.tiny() ? 64 : 1024, steps = bench.tiny() ? 16 : 112;
  // The first sequences draw tokens while the last prompts are read; none may end before the measurement does.
  const int64_t prompt = context - steps + 16, drawn = bench.tiny() ? 64 : 256;
  EngineOptions options = training_options(4096);
  options.cache_bytes = 0;
  const auto engine = bench.open(options, false);
  std::vector<Completion> done;
  for (int64_t i = 0; i < batch; i++) {
    engine->submit(request_of(uint64_t(i), tokens_of(prompt, uint32_t(i), bench.config), drawn));
  }
  const auto& counts = *engine->counts();
  const double prefill = seconds_of([&] {
    while (counts.sampled < batch) engine->sample_step(done);
  });
  if (!decode) {
    const double tokens = double(batch * prompt);
    std::printf("prefill %s: %.0f tokens/s, floor at the measured product rate %.0f\n", bench.model_name.c_str(), tokens / prefill,
                bench.card.operations_per_second / (2 * double(body_weights(bench.config))));
    return;
  }
  for (int i = 0; i < 8; i++) engine->sample_step(done);  // recordings are made
  const int64_t before = counts.sampled;
  const double seconds = seconds_of([&] {
    for (int64_t i = 0; i < steps; i++) engine->sample_step(done);
  });
  const double weights = 2 * double(body_weights(bench.config) + head_weights(bench.config));
  const double cache = double(batch * context * cache_bytes_per_token(bench.config, Type::bf16));
  const double floor = (weights + cache) / bench.card.bytes_per_second;
  std::printf("decode %s, batch %d, context %d: %.0f tokens/s, %.3f ms a step, floor %.3f ms = %.0f tokens/s\n", bench.model_name.c_str(),
              int(batch), int(context), double(counts.sampled - before) / seconds, 1e3 * seconds / double(steps), 1e3 * floor,
              double(batch) / floor);
}

// One iteration as the paper's ALFWorld run has them: 16 groups of 8 episodes of up to 50 steps, prompts of 600 to 1,500 tokens of
// which a group shares the beginning, replies of 80. Episodes step together; the environment takes no time here.
void bench_iteration(const Bench& bench) {
  const int64_t groups = bench.tiny() ? 2 : 16, members = bench.tiny() ? 2 : 8, longest = bench.tiny() ? 3 : 50;
  const int64_t shared = bench.tiny() ? 16 : 300, least = bench.tiny() ? 20 : 600, most = bench.tiny() ? 40 : 1500, reply = bench.tiny() ? 4 : 80;
  EngineOptions options = training_options(16384);
  options.cache_bytes = 0;
  const auto engine = bench.open(options, true);
  std::vector<TrainingRow> rows;
  double tokens = 0;
  const double rollout = seconds_of([&] {
    for (int64_t step = 0; step < longest; step++) {
      std::vector<std::vector<int32_t>> prompts;
      for (int64_t episode = 0; episode < groups * members; episode++) {
        const uint32_t word = philox({3, 4}, uint32_t(episode), 0, 0, 0).word[0];
        if (step >= longest / 5 + int64_t(word % uint32_t(longest))) continue;  // it has ended
        const int64_t length = least + int64_t(philox({3, 5}, uint32_t(episode), uint32_t(step), 0, 0).word[0] % uint32_t(most - least));
        std::vector<int32_t> prompt = tokens_of(shared, uint32_t(episode / members), bench.config);
        for (const int32_t token : tokens_of(length - shared, uint32_t(1000 + episode * longest + step), bench.config)) prompt.push_back(token);
        engine->submit(request_of(prompts.size(), prompt, reply));
        prompts.push_back(std::move(prompt));
      }
      std::vector<Completion> done;
      while (engine->sampling()) engine->sample_step(done);
      for (Completion& completion : done) {
        TrainingRow row = test::step_row(std::move(prompts[completion.id]), completion.tokens, completion.id % 2 ? 0.7f : -0.4f);
        row.old_log_probs = std::move(completion.log_probs);
        tokens += double(row.tokens.size());
        rows.push_back(std::move(row));
      }
    }
  });
  const double update = seconds_of([&] {
    engine->forward_backward(test::FlatBatch(rows), {}, never);
    engine->actor().optimizer_step({1e-6, 0.9, 0.999, 1e-8, 0.01, 1});
    wait(engine->device(), engine->actor().weights().model.data);
  });
  const auto& counts = *engine->counts();
  std::printf("iteration %s: %d steps of episodes, %.2f M tokens trained, %.2f M computed and %.2f M reused while sampling\n",
              bench.model_name.c_str(), int(rows.size()), tokens / 1e6, double(counts.computed) / 1e6, double(counts.reused) / 1e6);
  std::printf("  rollout %.1f s, update %.1f s, together %.1f s\n", rollout, update, rollout + update);
}

void bench_7b(const Bench& bench, bool lora) {
  Bench large = bench;
  large.model_name = bench.tiny() ? "tiny" : "7b";
  large.config = model_named(large.model_name);
  EngineOptions options = training_options(bench.tiny() ? 64 : 8192);
  options.recompute = Recompute::block;
  if (lora) options.adapter = {32, 64};
  else options.moments = Type::bf16;
  std::printf("%s of 7B\n", lora ? "LoRA, in 40 GB," : "full fine-tuning");
  const auto engine = large.open(options, true, lora ? int64_t{40'000'000'000} : INT64_MAX);
  const int64_t length = bench.tiny() ? 32 : 1024, count = bench.tiny() ? 2 : 8;
  const std::vector<TrainingRow> rows = rows_of(count, length, length * 3 / 20, large.config);
  const double seconds = median_seconds([&] {
    engine->forward_backward(test::FlatBatch(rows), {}, never);
    engine->actor().optimizer_step({1e-6, 0.9, 0.999, 1e-8, 0.01, 1});
    wait(engine->device(), engine->actor().weights().model.data);
  });
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  std::printf("  a step of %d tokens: %.0f ms; the card has %.1f of %.1f GB in use\n", int(count * length), 1e3 * seconds,
              double(total - free) / 1e9, double(total) / 1e9);
}

}  // namespace

int main(int argc, char** argv) try {
  Bench bench{"1.5b"};
  std::set<std::string> chosen;
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "--model") == 0 && i + 1 < argc) bench.model_name = argv[++i];
    else if (std::strcmp(argv[i], "--batch") == 0 && i + 1 < argc) bench.batch = std::max(std::atoll(argv[++i]), 1ll);
    else if (std::strcmp(argv[i], "--no-cublas") == 0) bench.device_options.cublas = false;
    else if (std::strcmp(argv[i], "--library-samples") == 0) bench.device_options.cublas_samples = true;
    else chosen.insert(argv[i]);
  }
  const DeviceReport report = device_report();
  if (report.unavailable != Unavailable::none) {
    std::printf("skipped: %s\n", report.message.c_str());
    return 0;
  }
  bench.config = model_named(bench.model_name);
  {
    const auto device = make_cuda_device({});  // with the library where it is: the card at its best
    bench.card = measure_card(*device, bench.tiny());
  }
  std::printf("%s: copy %.2f TB/s, bf16 product %.0f TFLOP/s\n", report.devices[0].name.c_str(), bench.card.bytes_per_second / 1e12,
              bench.card.operations_per_second / 1e12);
  // Without the library, "own kernels" are compared with themselves.
  const MatmulLibraryReport library = matmul_library_report();
  std::printf("cuBLASLt: %s\n", library.found ? (library.version + ", " + library.path).c_str() : library.message.c_str());
  std::printf("wgmma: %s\n", library.without_wgmma.empty() ? "passed its self-test" : library.without_wgmma.c_str());
  const auto runs = [&](const char* name, bool usual) { return chosen.empty() ? usual : chosen.contains(name); };
  int status = 0;
  const auto measure = [&](const char* name, bool usual, const std::function<void()>& work) {
    if (!runs(name, usual)) return;
    try {
      work();
    } catch (const Error& error) {
      std::printf("%s: %s: %s\n", name, error.code, error.what());
      status = 1;
    }
  };
  measure("log-probs", true, [&] { bench_log_probs(bench); });
  measure("head", true, [&] { bench_head(bench); });
  measure("train", true, [&] { bench_train(bench); });
  measure("prefill", true, [&] { bench_sampling(bench, false); });
  measure("decode", true, [&] { bench_sampling(bench, true); });
  measure("iteration", true, [&] { bench_iteration(bench); });
  measure("full-7b", false, [&] { bench_7b(bench, false); });
  measure("lora-7b", false, [&] { bench_7b(bench, true); });
  return status;
} catch (const gigpo::Error& error) {
  std::printf("%s: %s\n", error.code, error.what());
  return 1;
}
