// The engine on the CPU: every instruction set, one thread and several.
#include "core/cpu/isa.h"
#include "test/core/agreement_checks.h"
#include "test/core/each_isa.h"

using namespace gigpo;

// Known answers of the Random123 library; test/random.test.ts checks the same for TypeScript.
static void test_philox_known_answers() {
  const auto check = [](Key key, Philox counter, Philox words) {
    const Philox found = philox(key, counter.word[0], counter.word[1], counter.word[2], counter.word[3]);
    CHECK(std::equal(found.word, found.word + 4, words.word));
  };
  check({0, 0}, {{0, 0, 0, 0}}, {{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}});
  check({~0u, ~0u}, {{~0u, ~0u, ~0u, ~0u}}, {{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}});
  check({0xA4093822, 0x299F31D0}, {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}},
        {{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}});
}

// bf16 within its rounding error, and compared with fp32 from the same weights.
static void check_bf16() {
  test::Bounds bounds{0, 0.1};
  bounds.merged = 0.15;
  const auto device = [](int threads) { return [=] { return make_cpu_device(threads, Type::bf16); }; };
  for (const bool biases_and_tied : {false, true}) {
    const int threads = biases_and_tied ? 3 : 1;
    test::check_engine(device(threads), test::tiny_model(biases_and_tied), bounds);
    test::check_critic(device(threads), test::tiny_model(biases_and_tied), bounds);
  }
  test::check_engine(device(2), test::gemma_model(true), bounds);
  test::part([&] { test::compare_with_the_cpu(device(2), test::small_gemma_model(64), {}, 0.1, 0.999); });
  for (const bool biases_and_tied : {false, true}) {
    const ModelConfig config = test::small_model(biases_and_tied, biases_and_tied ? 64 : 128);
    for (const AdapterConfig& adapter : {AdapterConfig{}, AdapterConfig{7, 16}}) {
      test::part([&] { test::compare_with_the_cpu(device(2), config, adapter, 0.1, 0.999); });
      // The gradient of a value has one direction, and so has its rounding error: nothing averages out over a
      // vocabulary.
      test::part([&] { test::compare_critic_with_the_cpu(device(2), config, adapter, 0.02, 0.998); });
    }
  }
}

// Without prefix sharing, a token's log-probability has the same bits as in a batch with its row alone.
static void test_rows_without_sharing_are_independent() {
  const auto make_device = [] { return make_cpu_device(2); };
  test::Subject subject(make_device, test::tiny_model(true), {.micro_batch_tokens = 300, .share_prefixes = false});
  const std::vector<test::TrainingRow> rows = test::conversations(subject);
  const auto together = test::log_probs_of(subject, rows);
  for (size_t r = 0; r < rows.size(); r++) {
    CHECK(test::log_probs_of(subject, {rows[r]})[0] == together[r], "row %d", int(r));
  }
}

// Results of the head are downloaded in several parts, in the right order.
static void test_results_in_several_downloads() {
  test::Subject subject([] { return make_cpu_device(2); }, test::tiny_model(true), {.micro_batch_tokens = 2048, .share_prefixes = false});
  std::vector<test::TrainingRow> rows;
  for (int64_t tokens = 0; tokens < Trainer::most_results + 4096; tokens += 63)
    rows.push_back(test::step_row({int32_t(rows.size() % 50)}, std::vector<int32_t>(63, int32_t(rows.size() % 53))));
  const auto found = test::log_probs_of(subject, rows);
  for (const size_t row : {size_t{0}, rows.size() / 2, rows.size() - 40, rows.size() - 1})
    CHECK(test::log_probs_of(subject, {rows[row]})[0] == found[row], "row %d", int(row));
}

// Rows per chunk of the head's logits: on a GPU all chunks have equal sizes up to the remainder.
static void test_head_chunk_sizes() {
  const DeviceTraits cpu = cpu_traits(Type::f32), cuda = cuda_traits(Type::bf16);
  const int64_t vocabulary = 151936, most = cuda.head_rows(vocabulary);
  CHECK(cuda.head_chunk(most, vocabulary) == most && cuda.head_chunk(most + 1, vocabulary) == most / 2 + 1);
  CHECK(cuda.head_chunk(0, vocabulary) == 0 && cuda.head_chunk(3 * most - 2, vocabulary) == most);
  CHECK(cpu.head_chunk(7, vocabulary) == 7 && cpu.head_chunk(1000, vocabulary) == cpu.head_rows(vocabulary));
}

int main() {
  test::part([&] { test_head_chunk_sizes(); });
  test::part([&] { test_results_in_several_downloads(); });
  test::part([&] { test_philox_known_answers(); });
  test::on_each_isa([&](cpu::Isa) {
    test::part([&] { test_rows_without_sharing_are_independent(); });
    for (const int threads : {1, 3}) {
      for (const bool biases_and_tied : {false, true}) {
        test::check_engine([=] { return make_cpu_device(threads); }, test::tiny_model(biases_and_tied), {5e-3, 2e-5});
        test::check_critic([=] { return make_cpu_device(threads); }, test::tiny_model(biases_and_tied), {1e-3, 2e-5});
      }
    }
    test::check_engine([] { return make_cpu_device(3); }, test::windowed_model(false), {5e-3, 2e-5});
    test::check_engine([] { return make_cpu_device(2); }, test::gemma_model(true), {5e-3, 2e-5});
    test::check_critic([] { return make_cpu_device(2); }, test::gemma_model(false), {1e-3, 2e-5});
    check_bf16();
  });
  return test::report();
}
