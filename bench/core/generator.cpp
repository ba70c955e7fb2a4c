// What the host does for a step of decoding, on a device that does nothing and takes no time: who takes part, with which pages, the upload
// made and the tokens read. On a device that is ahead this happens while it computes; else it stands between two of its steps, with the
// launch and the way of the tokens to the host.
//
// Prediction, of 128 sequences: 18 us of this (an EPYC with AVX-512, 2 cores) and some 20 us of waking up, copying and launching a graph would
// be spared a step that is predicted to take 2.8 ms (1.5B) or 1.5 ms (0.5B) on an H200: 1.4 and 2.6 %. What stays between two steps are two small copies, some 6 us.
#include "core/generator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/cuda/shapes.h"
#include "test/core/indirect_device.h"

using namespace gigpo;

namespace {

class NoDevice final : public test::IndirectDevice {
 public:
  using IndirectDevice::IndirectDevice;
  std::function<void()> fetch(void* host, const void*, size_t bytes) override {
    return [=] { std::memset(host, 0, bytes); };
  }
  // A recording: its operations are not even named.
  void replay(const ReplayKey&, const std::function<void()>&) override {}

 private:
  void perform(std::function<void()>) override {}
  void finish() override {}
};

}  // namespace

int main() {
  const ModelConfig config = bench::model_named("1.5b");
  NoDevice device(make_cpu_device(1, Type::bf16));
  const Transformer transformer(device, config);
  constexpr int64_t context = 1024, steps = 200;
  for (const int64_t batch : {1, 32, 128, 256}) {
    const int64_t bytes = batch * (context + 4 * steps) * cache_bytes_per_token(config, Type::bf16);  // nobody touches it
    Generator generator(device, transformer, {.cache_bytes = bytes, .step_tokens = 4096});
    std::vector<Completion> done;
    for (int64_t i = 0; i < batch; i++) {
      std::vector<int32_t> prompt(context, int32_t(i));
      generator.submit({uint64_t(i), std::move(prompt), 3 * steps, 1, {1, 2}, {uint32_t(i), 7}});
    }
    const PolicyTensors weights{{reinterpret_cast<void*>(256), Type::bf16, 1, transformer.layout().size, transformer.layout().size}, {}};
    while (generator.counts()->sampled < batch * 8) generator.step(weights, done);
    std::vector<double> microseconds;
    for (int64_t i = 0; i < steps; i++) {
      const auto start = std::chrono::steady_clock::now();
      generator.step(weights, done);
      microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(microseconds.begin(), microseconds.end());
    std::printf("%3d sequences of %d tokens: %6.1f us a step of the host's time (the fastest %.1f)\n", int(batch), int(context),
                microseconds[steps / 2], microseconds[0]);
  }
}
