// Errors in kernels that the emulator must detect. A broken kernel ends its process, so each case runs in a separate
// one.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "cuda/launch.h"
#include "cuda/ptx.cuh"
#include "test/core/check.h"
#include "test/cuda/emulator/array.h"
#include "test/cuda/emulator/cluster_mistakes.h"
#include "test/cuda/emulator/early_mistakes.h"
#include "test/cuda/emulator/kernel_names.h"
#include "test/cuda/emulator/streams.h"

using namespace gigpo::cuda;
using emulator::Array;

namespace {

constexpr unsigned full = 0xFFFFFFFFu;

#ifdef __SANITIZE_THREAD__
constexpr bool finds_races = true;
#else
constexpr bool finds_races = false;
#endif
#ifdef __SANITIZE_ADDRESS__
constexpr bool with_address_sanitizer = true;
#else
constexpr bool with_address_sanitizer = false;
#endif

struct Outcome {
  bool aborted, wrong;
  std::string said;
};

// Runs a case of a table below in a separate process.
Outcome outcome(const char* table, size_t index) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const std::string number = std::to_string(index);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    execl("/proc/self/exe", "mistakes_test", table, number.c_str(), static_cast<char*>(nullptr));
    std::abort();
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, size_t(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, WIFEXITED(status) && WEXITSTATUS(status) != 0, said};
}

__global__ void divergent_barrier(int*) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  else __syncthreads();
}
__global__ void barrier_for_some(int*) {
  if (threadIdx.x < 32 || threadIdx.x == 63) __syncthreads();
  else __syncwarp();
}
__global__ void shuffle_with_the_dead(int* to) {
  if (threadIdx.x == 7) return;
  to[threadIdx.x] = __shfl_xor_sync(full, int(threadIdx.x), 1);
}
__global__ void shuffle_without_self(int* to) { to[threadIdx.x] = __shfl_sync(1u, int(threadIdx.x), 0); }
__global__ void shuffle_from_outside(int* to) {
  if (threadIdx.x < 16) to[threadIdx.x] = __shfl_sync(0xFFFFu, int(threadIdx.x), 16);
}
__global__ void divergent_shuffle(int* to) {
  if (threadIdx.x < 16) to[threadIdx.x] = __shfl_sync(full, 1, 0);
  else to[threadIdx.x] = __shfl_sync(full, 2, 0);
}
__global__ void misaligned_load(int* to) {
  uint32_t matrices[2];
  load_matrices(matrices, dynamic_shared<char>() + 16 * (threadIdx.x % 16) + 8);
  to[threadIdx.x] = int(matrices[0]);
}
__global__ void load_beyond(int* to) {
  uint32_t matrices[4];
  load_matrices(matrices, dynamic_shared<char>() + 32 * (threadIdx.x + 1));
  to[threadIdx.x] = int(matrices[0]);
}
__global__ void copy_to_nowhere(int* to) { copy_async_16(to, to, true); }
__global__ void copy_from_odd(int* from) { copy_async_16(dynamic_shared<char>(), from + 1, true); }
__global__ void overrun(int* to) { to[threadIdx.x + 32] = 0; }
__global__ void overrun_shared(int*) { dynamic_shared<char>()[threadIdx.x + 1001] = 0; }
__global__ void overrun_static(int* to) {
  __shared__ int values[32];
  values[threadIdx.x] = 0;
  to[threadIdx.x] = values[threadIdx.x + 1];
}

struct Mistake {
  void (*kernel)(int*);
  unsigned threads;
  const char* message;
  bool with_address_sanitizer = true, without = true;
};

constexpr Mistake mistakes[] = {{divergent_barrier, 64, "different barriers"},
                                {barrier_for_some, 64, "wait for each other"},
                                {barrier_for_some, 64, "33 at __syncthreads"},
                                {barrier_for_some, 64, "mistakes_test.cu"},
                                {shuffle_with_the_dead, 32, "__shfl_xor_sync"},
                                {shuffle_with_the_dead, 7, "do not exist"},
                                {shuffle_without_self, 32, "its own lane"},
                                {shuffle_from_outside, 32, "does not name"},
                                {divergent_shuffle, 32, "have diverged"},
                                {misaligned_load, 32, "multiple of 16"},
                                {load_beyond, 32, "not shared memory", false},
                                {copy_to_nowhere, 1, "not shared memory", false},
                                {copy_from_odd, 1, "multiple of 16"},
                                {overrun, 32, "heap-buffer-overflow", true, false},
                                {overrun_shared, 32, "heap-buffer-overflow", true, false},
                                {overrun_static, 32, "global-buffer-overflow", true, false}};

int make_mistake(const Mistake& mistake) {
  const Array<int> to(32);
  launch(mistake.kernel, 1, mistake.threads, 1024, nullptr, to.data);
  return 0;
}

void test_errors_end_the_program() {
  for (size_t i = 0; i < std::size(mistakes); i++) {
    if (!(with_address_sanitizer ? mistakes[i].with_address_sanitizer : mistakes[i].without)) continue;
    const Outcome found = outcome("mistake", i);
    CHECK((found.aborted || found.wrong) && found.said.find(mistakes[i].message) != std::string::npos,
          "expected \"%s\", found \"%s\"", mistakes[i].message, found.said.c_str());
  }
}

// Kernels with a correct version, and one without the step that makes it correct.
template <bool right>
__global__ void reverse(const int*, int* to) {
  __shared__ int values[256];
  values[threadIdx.x] = int(threadIdx.x);
  if (right) __syncthreads();
  to[blockIdx.x * 256 + threadIdx.x] = values[255 - threadIdx.x];
}
template <bool right>
__global__ void reverse_warps(const int*, int* to) {
  auto* values = dynamic_shared<int>();
  values[threadIdx.x] = int(threadIdx.x);
  if (right) __syncwarp();
  to[blockIdx.x * 256 + (threadIdx.x ^ 0xE0)] = values[threadIdx.x ^ 31];
}
template <bool right>
__global__ void reverse_copies(const int* from, int* to) {
  auto* values = dynamic_shared<int>();
  if (threadIdx.x < 64) copy_async_16(values + 4 * threadIdx.x, from + 4 * threadIdx.x, true);
  copy_async_commit();
  if (right) copy_async_wait<0>();
  __syncthreads();
  to[blockIdx.x * 256 + threadIdx.x] = values[255 - threadIdx.x];
}
// Copies of the next step overtake reads of the last step.
template <bool right>
__global__ void two_copies(const int* from, int* to) {
  auto* values = dynamic_shared<int>();
  for (int step = 0; step < 2; step++) {
    if (right) __syncthreads();
    if (threadIdx.x < 64) copy_async_16(values + 4 * threadIdx.x, from + 4 * threadIdx.x, true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    to[blockIdx.x * 256 + threadIdx.x] = values[255 - threadIdx.x];
  }
}
template <bool right>
__global__ void count_blocks(const int*, int* to) {
  if (threadIdx.x != 0) return;
  if (right) atomicAdd(to, 1);
  else ++*to;
}
// The last block to finish adds to the others' writes.
template <bool right>
__global__ void finish_last(const int*, int* to) {
  __shared__ bool last;
  to[blockIdx.x * 256 + threadIdx.x] = 254 - int(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (right) __threadfence();
    last = atomicAdd(to + gridDim.x * 256, 1) == int(gridDim.x) - 1;
    if (right) __threadfence();
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; last && i < gridDim.x * 256; i += 256) to[i]++;
}

struct Race {
  void (*right)(const int*, int*);
  void (*wrong)(const int*, int*);
  bool shows;  // in the result, which is 255, 254 … 0 if correct
};

constexpr Race race_cases[] = {{reverse<true>, reverse<false>, true},
                               {reverse_warps<true>, reverse_warps<false>, true},
                               {reverse_copies<true>, reverse_copies<false>, true},
                               {two_copies<true>, two_copies<false>, false},
                               {count_blocks<true>, count_blocks<false>, false},
                               {finish_last<true>, finish_last<false>, false}};

int race(void (*kernel)(const int*, int*)) {
  const Array<int> to(4 * 256 + 1), from(256);
  to[4 * 256] = 0;
  for (int i = 0; i < 256; i++) from[size_t(i)] = i;
  launch(kernel, 4, 256, 1024, nullptr, from.data, to.data);
  bool right = true;
  for (int i = 0; i < 4 * 256; i++) right &= to[size_t(i)] == 255 - i % 256;
  return right ? 0 : 1;
}

void test_races() {
  for (size_t i = 0; i < std::size(race_cases); i++) {
    const Outcome right = outcome("right", i), wrong = outcome("wrong", i);
    CHECK(wrong.wrong || !(race_cases[i].shows || finds_races), "race %d", int(i));
    CHECK(!right.wrong || !race_cases[i].shows, "race %d: %s", int(i), right.said.c_str());
    CHECK(right.said.find("data race") == std::string::npos, "race %d: %s", int(i), right.said.c_str());
    CHECK(!finds_races || wrong.said.find("data race") != std::string::npos, "race %d", int(i));
  }
}

int status_of(bool right) {
  if (!right) std::fprintf(stderr, "the result is wrong\n");
  return right ? 0 : 1;
}

template <class Case, size_t count>
void show(const char* table, const Case (&cases)[count]) {
  for (size_t i = 0; i < count; i++) {
    const Outcome found = outcome(table, i);
    const bool race = finds_races && found.said.find("data race") != std::string::npos;  // is reported before its consequences
    CHECK((found.aborted || found.wrong) && (race || found.said.find(cases[i].message) != std::string::npos), "expected \"%s\", found \"%s\"",
          cases[i].message, found.said.c_str());
  }
}

enum class Event { none, fork, join };

__global__ void put(int* to, int value) { *to = value; }
__global__ void add_to(int* to, const int* from, int value) { *to = *from + value; }

// A second stream adds 10 to the first one's values in two places; the first then adds 100. One event may be missing:
// at the fork for the second place, or at the join of the first.
bool forks_and_joins(Event missing, bool captured) {
  const Array<int> put_there(2), between(2), result(2);
  for (int i = 0; i < 2; i++) put_there[size_t(i)] = between[size_t(i)] = result[size_t(i)] = 0;
  cudaStream_t main, side;
  cudaEvent_t events[4];
  CUDA_CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, -1));
  for (cudaEvent_t& event : events) CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto wait = [&](cudaStream_t waiting, cudaStream_t passed, cudaEvent_t event, bool left_out) {
    CUDA_CHECK(cudaEventRecord(event, passed));
    if (!left_out) CUDA_CHECK(cudaStreamWaitEvent(waiting, event, 0));
  };
  if (captured) CUDA_CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 2; i++) {
    launch(put, 1, 1, 0, main, put_there.data + i, i + 1);
    wait(side, main, events[i], missing == Event::fork && i == 1);
    launch(add_to, 1, 1, 0, side, between.data + i, put_there.data + i, 10);
    CUDA_CHECK(cudaEventRecord(events[2 + i], side));
  }
  for (int i = 0; i < 2; i++) {
    if (missing != Event::join || i == 1) CUDA_CHECK(cudaStreamWaitEvent(main, events[2 + i], 0));
    launch(add_to, 1, 1, 0, main, result.data + i, between.data + i, 100);
  }
  if (captured) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA_CHECK(cudaStreamEndCapture(main, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(cudaGraphLaunch(executable, main));
    CUDA_CHECK(cudaGraphExecDestroy(executable));
  }
  CUDA_CHECK(cudaStreamSynchronize(main));
  const bool right = result[0] == 111 && result[1] == 112;
  for (const cudaEvent_t event : events) CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(side));
  CUDA_CHECK(cudaStreamDestroy(main));
  return right;
}

// A missing fork event shows if the second stream runs early, a missing join event if it runs late. A capture whose
// second stream is not joined ends with CUDA's error.
void test_missing_events() {
  for (const bool captured : {false, true})
    for (const bool early : {false, true}) {
      emulator::priority_is_early = early;
      CHECK(forks_and_joins(Event::none, captured), "early %d, captured %d", early, captured);
      CHECK(forks_and_joins(Event::fork, captured) == !early, "early %d, captured %d", early, captured);
      CHECK(forks_and_joins(Event::join, captured) == early, "early %d, captured %d", early, captured);
    }
  emulator::priority_is_early = false;
  const Array<int> to(1);
  cudaStream_t main, side;
  cudaEvent_t event;
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  CUDA_CHECK(cudaEventRecord(event, main));
  CUDA_CHECK(cudaStreamWaitEvent(side, event, 0));
  launch(put, 1, 1, 0, side, to.data, 1);
  CHECK(cudaStreamEndCapture(main, &graph) == cudaErrorStreamCaptureUnjoined);
  cudaGetLastError();
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(side));
  CUDA_CHECK(cudaStreamDestroy(main));
}

void test_asynchronous_errors() {
  CHECK(stream_tiles_with(LeftOut::nothing));
  show("asynchronous", asynchronous_mistakes);
}

void test_cluster_errors() {
  CHECK(share_tiles_with(ClusterLeftOut::nothing));
  show("cluster", cluster_mistakes);
}

void test_overlapping_kernel_errors() {
  CHECK(add_with(Early::nothing));
  show("early", early_mistakes);
}

template <class T, int width>
__global__ void sized(T*) {}

// The resources of a multiprocessor exactly, and one unit more.
void test_limits() {
  const auto kernel = sized<float, 4>;
  const auto* function = reinterpret_cast<const void*>(kernel);
  CHECK(emulator::kernel_name(function) == "sized<float, 4>", "%s", emulator::kernel_name(function).c_str());
  CHECK(emulator::resources_of(function).registers == 0);
  float* pointer = nullptr;
  const auto status = [&](unsigned threads, size_t shared_bytes) {
    const cudaLaunchConfig_t config = {1, threads, shared_bytes, nullptr, nullptr, 0};
    const cudaError_t found = cudaLaunchKernelEx(&config, kernel, pointer);
    cudaGetLastError();
    return found;
  };
  constexpr size_t unasked = 48 << 10, most = 227 << 10;
  emulator::set_resources(function, {48, 0});
  CHECK(status(32, unasked - 48) == cudaSuccess && status(32, unasked - 32) == cudaErrorInvalidValue);
  launch(kernel, 1, 32, unasked - 32, nullptr, pointer);  // requests the opt-in
  CHECK(status(32, unasked - 32) == cudaSuccess && status(32, unasked) == cudaErrorInvalidValue);
  launch(kernel, 1, 32, most - 48, nullptr, pointer);
  CHECK_THROWS(launch(kernel, 1, 32, most - 32, nullptr, pointer), "INTERNAL");
  emulator::set_resources(function, {0, 168});
  CHECK(status(384, 0) == cudaSuccess && status(416, 0) == cudaErrorLaunchOutOfResources);
  emulator::set_resources(function, {0, 65});  // allocated in units of 256 per warp, so 72 per thread
  CHECK(status(896, 0) == cudaSuccess && status(928, 0) == cudaErrorLaunchOutOfResources);
}

constexpr gigpo::test::Test tests[] = {{"errors end the program", test_errors_end_the_program},
                          {"limits", test_limits},
                          {"races", test_races},
                           {"missing events", test_missing_events},
                           {"asynchronous errors", test_asynchronous_errors},
                           {"errors of clusters", test_cluster_errors},
                           {"errors with overlapping kernels", test_overlapping_kernel_errors}};

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) {
    const std::string table = arguments[1];
    const size_t index = std::strtoull(arguments[2], nullptr, 10);
    if (table == "asynchronous") return status_of(stream_tiles_with(asynchronous_mistakes[index].left_out));
    if (table == "cluster") return status_of(share_tiles_with(cluster_mistakes[index].left_out));
    if (table == "early") return status_of(add_with(early_mistakes[index].early));
    if (table == "mistake") return make_mistake(mistakes[index]);
    return race(table == "right" ? race_cases[index].right : race_cases[index].wrong);
  }
  return gigpo::test::run_all(tests);
}
