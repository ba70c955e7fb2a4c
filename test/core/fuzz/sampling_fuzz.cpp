// Requests to sample, which join, are cancelled and end between the steps of a generator with little memory.
#include <cstdlib>

#include "test/core/fuzz/engine_inputs.h"

namespace gigpo::test {

std::vector<Bytes> corpus() { return random_inputs(64, 600); }

static void require(bool ok) {
  if (!ok) std::abort();
}

static SampleRequest request_of(Input& in, uint64_t id) {
  SampleRequest request;
  request.id = id;
  const bool odd = in.below(4) == 0;
  request.given_images = images_of(in, odd);
  for (const auto& image : request.given_images) append_image(*image, request.prompt);
  for (int count = in.below(32); count > 0; count--) request.prompt.push_back(token_of(in, odd));
  request.max_tokens = odd ? in.number<int64_t>(12) : 1 + in.below(12);
  request.temperature = in.below(6) == 0 ? in.take<float>() : 0.25f * float(in.below(8));
  request.stop_tokens = in.list<int32_t>(size_t(in.below(3)));
  request.key = {in.byte(), 1};
  if (in.below(3) == 0) request.constraint = small_grammar();
  request.top = odd ? in.number<int32_t>(4) : in.below(4);
  request.client = uint64_t(in.below(3)), request.group = uint64_t(in.below(3));
  return request;
}

static void check(const std::vector<Completion>& done, int64_t vocabulary) {
  for (const Completion& completion : done) {
    require(completion.tokens.size() == completion.log_probs.size() && completion.tokens.size() == completion.entropies.size());
    require(completion.top_tokens.size() == completion.top_log_probs.size());
    for (const int32_t token : completion.tokens) require(token >= 0 && token < vocabulary);
  }
}

static void sample(Input& in) {
  Engine& engine = fuzzed_subject().engine;
  const int64_t vocabulary = engine.transformer().config().vocabulary_size;
  uint64_t next = 1;
  for (int step = 0; step < 64 && (in.left() > 0 || engine.sampling()); step++) {
    std::vector<Completion> done;
    const int kind = in.left() > 0 ? in.below(6) : 5;
    if (kind < 2) {
      const SampleRequest request = request_of(in, next++);
      try {
        engine.submit(request);
      } catch (const Error&) {
      }
    }
    if (kind == 2) engine.cancel({uint64_t(in.below(int(std::min<uint64_t>(next, 200))))});
    if (kind == 3) engine.finish({uint64_t(in.below(int(std::min<uint64_t>(next, 200))))}, done);
    if (kind > 3) engine.sample_step(done);
    check(done, vocabulary);
  }
}

}  // namespace gigpo::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gigpo;
  test::Input in(data, size);
  try {
    test::sample(in);
  } catch (const Error&) {
  }
  test::fuzzed_subject().engine.abandon();
  return 0;
}
