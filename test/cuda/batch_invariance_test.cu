// Batch invariance of completions, with a matrix library whose sums depend on the batch size: on a GPU the installed
// one, in the emulator the fake cuBLASLt, whose path is this program's argument.
#include "test/core/engine_checks.h"
#include "test/cuda/fake_library.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using test::Subject;

namespace {

// Log-probabilities of the requests: each alone, then all together.
std::array<std::vector<float>, 2> alone_and_together(const CudaOptions& options, const ModelConfig& config) {
  std::vector<SampleRequest> requests;
  for (uint32_t i = 0; i < 6; i++) {
    SampleRequest request;
    request.id = i;
    request.prompt = test::random_tokens(3 + 5 * i, i, config.vocabulary_size);
    request.max_tokens = 6;
    request.key = {i, 7};
    requests.push_back(std::move(request));
  }
  std::array<std::vector<float>, 2> found;
  for (const bool together : {false, true}) {
    Subject subject([&] { return make_cuda_device(options); }, config);
    std::vector<Completion> done;
    for (const SampleRequest& request : requests) {
      subject.engine.submit(request);
      if (!together) test::run_until_idle(subject, done);
    }
    test::run_until_idle(subject, done);
    std::sort(done.begin(), done.end(), [](const Completion& a, const Completion& b) { return a.id < b.id; });
    for (const Completion& each : done) found[together].insert(found[together].end(), each.log_probs.begin(), each.log_probs.end());
  }
  return found;
}

// Sampling without the library and with it, in both precisions; training with it.
void test_batch_invariance() {
  for (const Type precision : {Type::f32, Type::bf16}) {
    const ModelConfig config = test::tiny_model(precision == Type::f32, 16);
    const CudaOptions plain{.precision = precision};
    [[maybe_unused]] const CudaOptions library{.precision = precision, .cublas_samples = true};
    CHECK(make_cuda_device(plain)->deterministic());
    const auto [alone, together] = alone_and_together(plain, config);
    CHECK(alone.size() == 36 && alone == together, "%d log-probabilities", int(alone.size()));
#ifdef GIGPO_CUDA_EMULATOR
    CHECK(!make_cuda_device(library)->deterministic());
    const auto [library_alone, library_together] = alone_and_together(library, config);
    CHECK(library_alone != library_together, "the results of the fake library do not depend on the batch, so this test cannot fail");
#endif
  }
}

#ifdef GIGPO_CUDA_EMULATOR

// A step that processes whole prompts and samples a token for each is replayed like a step that only samples. Here
// every step is of this kind, with different prompts: 42 tokens of 7 prompts, 33 of 6, then 40 of 5 and again 42 of 7,
// which are padded to earlier sizes.
void test_short_steps_are_replayed() {
  const ModelConfig config = test::tiny_model(true, 16);
  Subject plain([] { return make_cuda_device({.graphs = false}); }, config), repeated([] { return make_cuda_device({}); }, config);
  for (uint32_t round = 0; round < 4; round++) {
    std::vector<Completion> wanted, found;
    for (uint32_t i = 0; i < 7 - round % 3; i++) {
      SampleRequest request;
      request.id = i, request.key = {i, round}, request.max_tokens = 1;
      request.prompt = test::random_tokens(3 + i + (round == 2 ? 3 : 0), 10 * round + i, config.vocabulary_size);
      plain.engine.submit(request), repeated.engine.submit(std::move(request));
    }
    test::run_until_idle(plain, wanted);
    const int64_t before = cuda::emulator::graph_launches;
    test::run_until_idle(repeated, found);
    test::expect_same(found, wanted, "a short step");
    CHECK(cuda::emulator::graph_launches == before + (round >= 2), "round %d: %d launches", int(round),
          int(cuda::emulator::graph_launches - before));
  }
}

// An enabled library computes training, but not sampling.
void test_training_uses_the_library(const test::FakeLibrary& fake) {
  const ModelConfig config = test::tiny_model(false, 16);
  Subject subject([] { return make_cuda_device({}); }, config);
  const auto products_of = [&](auto operation) {
    const long before = fake.get("products");
    operation();
    return fake.get("products") - before;
  };
  const std::vector<test::TrainingRow> rows = test::training_rows(subject);
  CHECK(products_of([&] { test::train(subject, rows, test::policy_loss()); }) > 10);
  std::vector<Completion> done;
  for (SampleRequest request : test::sample_requests(config.vocabulary_size, 20)) subject.engine.submit(std::move(request));
  CHECK(products_of([&] { test::run_until_idle(subject, done); }) == 0);
}

#endif

}  // namespace

int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
#ifdef GIGPO_CUDA_EMULATOR
  CHECK(argc > 1, "the argument must be the path of the fake library");
  if (argc < 2) return test::report();
  const test::FakeLibrary fake(argv[1]);
  if (!fake) return test::report();
  test::choose_library(argv[1]);
  test_training_uses_the_library(fake);
#endif
  return test::on_card(std::initializer_list<test::Test> {
    {"same in any batch", test_batch_invariance},
#ifdef GIGPO_CUDA_EMULATOR
        {"short steps are repeated", test_short_steps_are_replayed},
#endif
  });
}
