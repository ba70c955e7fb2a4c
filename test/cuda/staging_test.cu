// Uploads and fetches through reused pinned memory: nothing is overwritten before the stream has read it, and the host
// need not wait until the stream is idle.
#include <algorithm>
#include <vector>

#include "cuda/memory.h"
#include "test/cuda/on_card.h"
#ifdef GIGPO_CUDA_EMULATOR
#include "test/cuda/emulator/streams.h"
#endif

using namespace gigpo;
using cuda::Scratch;
using cuda::Staging;

namespace {

// Round i uploads i and fetches it; the host reads round i - 1 after it has queued round i. The ring wraps around
// several times: first it has room for two rounds, so that the host only waits for the fetch, then it is too small for
// them.
void test_ring_of_uploads() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    Staging staging(stream);
    Scratch memory;
    memory.grow(3 * Staging::largest);
    std::function<void()> before;
    std::vector<int32_t> found[2];
    for (int32_t i = 0; i < 40; i++) {
      const int parts = i < 20 ? 1 : 3;
      const size_t bytes = i % 3 == 0 ? Staging::largest : Staging::largest / 3 / 64 * 64 + 64 * size_t(i);
      const std::vector<int32_t> sent(bytes / sizeof(int32_t), i);
      std::vector<int32_t>& to = found[i % 2];
      to.assign(sent.size() * parts, -1);
#ifdef GIGPO_CUDA_EMULATOR
      const size_t waits = cuda::emulator::waits;
#endif
      for (int part = 0; part < parts; part++) staging.upload(static_cast<std::byte*>(memory.data()) + bytes * part, sent.data(), bytes);
      const std::function<void()> wait = staging.fetch(to.data(), memory.data(), bytes * parts);
      if (before) before();
#ifdef GIGPO_CUDA_EMULATOR
      // From the fourth round on both buffers have their final size.
      if (i >= 4 && i < 20) CHECK(cuda::emulator::waits == waits + 1, "round %d: %d waits", int(i), int(cuda::emulator::waits - waits));
#endif
      const std::vector<int32_t>& last = found[(i + 1) % 2];
      CHECK(std::all_of(last.begin(), last.end(), [&](int32_t value) { return value == i - 1; }), "round %d", int(i) - 1);
      CHECK(to.front() == -1, "the result of round %d was written before the host read it", int(i));
      before = wait;
    }
  }
  CUDA_CHECK(cudaStreamDestroy(stream));
}

// A fetch that is never read does not affect the next in its place, and a download sees all queued work.
void test_unread_fetch() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    Staging staging(stream);
    Scratch memory;
    memory.grow(sizeof(int32_t));
    int32_t unread = -1, found = -1;
    for (int32_t i = 0; i < 4; i++) {
      staging.upload(memory.data(), &i, sizeof(i));
      if (i < 3) staging.fetch(&unread, memory.data(), sizeof(i));
      else staging.fetch(&found, memory.data(), sizeof(i))();
    }
    CHECK(unread == -1 && found == 3, "%d, %d", int(unread), int(found));
    staging.download(&found, memory.data(), sizeof(found));
    CHECK(found == 3);
  }
  CUDA_CHECK(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  return test::on_card(std::initializer_list<test::Test>{{"ring of uploads", test_ring_of_uploads},
                                                        {"fetch that is never read", test_unread_fetch}});
}
