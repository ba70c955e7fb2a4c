// The head's losses concurrent with its products (cuda/side_stream.h): bit-identical to one stream, within planned
// memory, directly and recorded. In the emulator the second stream runs as late as its events allow, and as early, so
// that a missing event shows.
#include "cuda/side_stream.h"
#include "test/core/memory_checks.h"
#include "test/cuda/on_card.h"
#ifdef GIGPO_CUDA_EMULATOR
#include "test/cuda/emulator/streams.h"
#endif

using namespace gigpo;
using test::Subject;

namespace {

// Without the library; a pass of the head has 512 rows.
CudaOptions options_of(Type precision, bool two_streams, const ModelConfig& config) {
  return {.precision = precision, .cublas = false, .two_streams = two_streams, .head_logits = DeviceTraits::head_unit * config.vocabulary_size};
}

ModelConfig shallow_model() {
  ModelConfig config = test::tiny_model(true, 16);
  config.layers = 1;
  return config;
}

template <class Check>
void with_late_and_early_streams(Check check) {
#ifdef GIGPO_CUDA_EMULATOR
  for (const bool early : {false, true}) {
    cuda::emulator::priority_is_early = early;
    check();
  }
  cuda::emulator::priority_is_early = false;
#else
  check();
#endif
}

struct Found {
  double loss;
  std::vector<std::vector<float>> log_probs;
  std::vector<float> gradients;
  bool operator==(const Found&) const = default;
};

// 1,230 sampled tokens at once: three chunks, of which the third reuses the memory of the first.
Found train(const CudaOptions& options, const ModelConfig& config) {
  Subject subject([&] { return make_cuda_device(options); }, config, {.micro_batch_tokens = 1300});
  std::vector<test::TrainingRow> rows;
  for (uint32_t i = 0; i < 41; i++)
    rows.push_back(test::step_row({0}, test::random_tokens(30, i, config.vocabulary_size), float(i % 3) - 1));
  test::add_log_probs(subject, rows);
  Found found;
  found.loss = test::train(subject, rows, test::policy_loss());
  found.gradients = subject.gradients();
  found.log_probs = test::log_probs_of(subject, rows);
  return found;
}

void test_bits() {
  const ModelConfig config = shallow_model();
  for (const Type precision : {Type::bf16, Type::f32}) {
    const Found wanted = train(options_of(precision, false, config), config);
    with_late_and_early_streams([&] { CHECK(train(options_of(precision, true, config), config) == wanted); });
  }
}

void test_plan() {
  const ModelConfig config = shallow_model();
  for (const bool two_streams : {false, true}) {
    const auto make_device = [&] { return make_cuda_device(options_of(Type::bf16, two_streams, config)); };
    Subject subject(make_device, config, {.micro_batch_tokens = 700});
    EngineOptions options;
    options.micro_batch_tokens = 700;
    const DeviceTraits traits = subject.engine.device().traits();
    const MemoryPlan plan = plan_memory(config, options, traits, {});
    test::train(subject, {test::fullest_row(700, config)}, test::policy_loss());
    // One stream would need more memory for 512 tokens, whose logits are computed in one chunk, than for 700.
    const auto planned = size_t(plan.activations), taken = subject.engine.peak_bytes();
    CHECK(two_streams ? planned == taken : planned > taken, "%d planned, %d used", int(planned), int(taken));
    // The plan also covers fewer tokens.
    const auto head_bytes = [&](int64_t tokens) {
      Arena arena(traits.activation_type);
      HeadBuffers({config, {}, tokens, tokens}, traits.head_rows(config.vocabulary_size), traits.lanes, true, arena);
      return arena.peak();
    };
    for (int64_t tokens = 1; tokens < 1600; tokens++) CHECK(head_bytes(tokens) <= head_bytes(tokens + 1), "%d", int(tokens));
  }
}

// Two chunks of a head, recorded and replayed: each replay gives the results of the first run.
void test_recording() {
  constexpr int64_t vocabulary = 96, rows = 40, columns = 16;
  const auto device = make_cuda_device({.cublas = false, .two_streams = true});
  Arena arena(*device);
  const Tensor hidden = arena.tensor(2 * rows, columns), table = arena.tensor(vocabulary, columns), out = arena.tensor(2 * rows, columns);
  const Tensor logits[] = {arena.tensor(rows, vocabulary, Type::f32), arena.tensor(rows, vocabulary, Type::f32)};
  std::vector<uint16_t> values(size_t(std::max(2 * rows, vocabulary) * columns));
  std::vector<PolicyHeadRow> given(2 * rows);
  for (size_t i = 0; i < values.size(); i++) values[i] = to_bf16(Subject::uniform(int64_t(i)));
  for (int64_t i = 0; i < 2 * rows; i++) given[i] = {int32_t(i * 7 % vocabulary), 1, 1, -3};
  device->upload(hidden.data, values.data(), size_t(hidden.rows * hidden.columns) * 2);
  device->upload(table.data, values.data(), size_t(table.rows * table.columns) * 2);
  const PolicyHeadRow* const inputs = arena.upload(given);
  auto* const results = arena.array<PolicyHeadResult>(2 * rows);
  PolicyHeadOptions options;
  options.mode = HeadMode::policy;
  const auto head = [&] {
    for (int lane = 0; lane < 2; lane++) {
      device->matmul(hidden.row_range(lane * rows, rows), false, table, true, logits[lane], false);
      device->policy_head_concurrent(lane, 1e6, logits[lane], inputs + lane * rows, options, results + lane * rows);
    }
    for (int lane = 0; lane < 2; lane++) {
      device->join(lane);
      device->matmul(device->gradient_of_logits(logits[lane]), false, table, false, out.row_range(lane * rows, rows), false);
    }
  };
  const auto found = [&](bool recorded) {
    device->zero(out.data, size_t(out.rows * out.columns) * 2);
    recorded ? device->replay({1}, head) : head();
    std::vector<uint16_t> bits(size_t(out.rows * out.columns));
    device->download(bits.data(), out.data, bits.size() * 2);
    return bits;
  };
  const std::vector<uint16_t> wanted = found(false);
  CHECK(std::any_of(wanted.begin(), wanted.end(), [](uint16_t bits) { return bits != 0; }));
  with_late_and_early_streams([&] {
#ifdef GIGPO_CUDA_EMULATOR
    const int64_t before = cuda::emulator::graph_launches;
#endif
    for (int pass = 0; pass < 4; pass++) CHECK(found(true) == wanted, "pass %d", pass);
#ifdef GIGPO_CUDA_EMULATOR
    CHECK(cuda::emulator::graph_launches > before, "nothing was recorded");
#endif
    CHECK(found(false) == wanted);
  });
}

// Both sides take the same time, and each has multiprocessors.
void test_shares_are_balanced() {
  CHECK(cuda::share_of_losses(4096. * 151936 * 10, 3. * 4096 * 151936 * 1536, 132, Type::bf16) == 11);
  CHECK(cuda::share_of_losses(4096. * 151936 * 10, 3. * 4096 * 151936 * 896, 132, Type::bf16) == 18);
  CHECK(cuda::share_of_losses(4096. * 151936 * 12, 3. * 4096 * 151936 * 896, 132, Type::f32) == 2);
  CHECK(cuda::share_of_losses(1, 1e15, 132, Type::bf16) == 1 && cuda::share_of_losses(1e15, 1, 132, Type::bf16) == 131);
}

}  // namespace

int main() {
  return test::on_card(std::initializer_list<test::Test>{
      {"bits", test_bits}, {"plan", test_plan}, {"recording", test_recording}, {"shares", test_shares_are_balanced}});
}
