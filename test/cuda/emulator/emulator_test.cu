// Does the emulator do what CUDA does, and does it find the mistakes that it is there to find? Broken kernels run in a
// process of their own: they end it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "cuda/launch.h"
#include "cuda/ptx.cuh"
#include "test/core/check.h"

using namespace gigpo::cuda;

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

// Memory that host and device see, as the emulator's device memory is.
template <class T>
struct Array {
  explicit Array(size_t count) : count(count) { CUDA_CHECK(cudaMalloc(&data, count * sizeof(T))); }
  ~Array() { cudaFree(data); }
  Array(const Array&) = delete;
  T& operator[](size_t i) const { return data[i]; }
  T* data = nullptr;
  size_t count;
};

struct Outcome {
  bool aborted, wrong;
  std::string said;
};

// Runs a case of the table below in a process of its own.
Outcome outcome(const char* table, size_t index) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const std::string number = std::to_string(index);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    execl("/proc/self/exe", "emulator_test", table, number.c_str(), static_cast<char*>(nullptr));
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

// --- threads, warps and blocks ---

__global__ void write_indices(int* to) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] += int(100 * block + thread) + 2;  // 0xFF is -1
}

void grids_and_blocks() {
  const Array<int> found(24 * 30);
  launch(write_indices, dim3(2, 3, 4), dim3(5, 3, 2), 0, nullptr, found.data);
  for (int i = 0; i < 24 * 30; i++) CHECK(found[size_t(i)] == 100 * (i / 30) + i % 30 + 1);
  CHECK_THROWS(launch(write_indices, 1, 1025, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, 0, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 0, 32, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, dim3(1, 1, 65), 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, dim3(1, 65536), 32, 0, nullptr, found.data), "INTERNAL");
  CHECK_THROWS(launch(write_indices, 1, 32, (227 << 10) + 1, nullptr, found.data), "INTERNAL");
}

template <class T>
__global__ void shuffle_all(T* to, int width) {
  const int lane = int(threadIdx.x % 32);
  const T own = T(1000 + threadIdx.x);
  T* at = to + threadIdx.x * 128;
  for (int i = 0; i < 32; i++) {
    at[i] = __shfl_sync(full, own, i, width);
    at[32 + i] = __shfl_up_sync(full, own, unsigned(i), width);
    at[64 + i] = __shfl_down_sync(full, own, unsigned(i), width);
    at[96 + i] = __shfl_xor_sync(full, own, i, width);
  }
  if (lane < 8) at[0] = __shfl_sync(0xFFu, own, 3, 8);
  else at[0] = own;
}

template <class T>
void shuffles_of() {
  for (int width = 1; width <= 32; width *= 2) {
    const Array<T> found(64 * 128);
    launch(shuffle_all<T>, 1, 64, 0, nullptr, found.data, width);
    for (int thread = 0; thread < 64; thread++)
      for (int i = 0; i < 32; i++) {
        const int lane = thread % 32, base = 1000 + thread - lane, first = lane / width * width, last = first + width - 1;
        const T* at = found.data + thread * 128;
        if (i > 0) CHECK(at[i] == T(base + first + i % width));
        CHECK(at[32 + i] == T(base + (lane - i < first ? lane : lane - i)));
        CHECK(at[64 + i] == T(base + (lane + i > last ? lane : lane + i)));
        CHECK(at[96 + i] == T(base + ((lane ^ i) > last ? lane : lane ^ i)));
        CHECK(at[0] == T(base + (lane < 8 ? 3 : lane)));
      }
  }
}

void shuffles() {
  shuffles_of<int>();
  shuffles_of<unsigned>();
  shuffles_of<float>();
  shuffles_of<double>();
  shuffles_of<long long>();
}

__global__ void vote(unsigned* to) {
  const bool odd = threadIdx.x % 2 == 1;
  unsigned* at = to + threadIdx.x * 8;
  at[0] = __ballot_sync(full, odd);
  at[1] = unsigned(__all_sync(full, odd)) * 2 + unsigned(__any_sync(full, odd));
  if (odd) at[2] = unsigned(__all_sync(0xAAAAAAAAu, odd));
  else at[2] = unsigned(__any_sync(0x55555555u, odd));
  at[3] = unsigned(__syncthreads_count(odd));
  at[4] = unsigned(__syncthreads_or(threadIdx.x == 63)) * 2 + unsigned(__syncthreads_and(threadIdx.x != 63));
  if (threadIdx.x >= 40) return;  // the rest go on without these
  at[5] = unsigned(__syncthreads_count(1));
  if (threadIdx.x >= 32) at[6] = __ballot_sync(0xFFu, threadIdx.x != 32);
}

void votes() {
  const Array<unsigned> found(64 * 8);
  launch(vote, 1, 64, 0, nullptr, found.data);
  for (size_t i = 0; i < 64; i++) {
    const unsigned* at = found.data + i * 8;
    CHECK(at[0] == 0xAAAAAAAAu && at[1] == 1 && at[2] == i % 2 && at[3] == 32 && at[4] == 2);
    if (i < 40) CHECK(at[5] == 40);
    if (i >= 32 && i < 40) CHECK(at[6] == 0xFEu);
  }
}

__global__ void count_in_order(int* counter, int* order) { order[threadIdx.x] = atomicAdd(counter, 1); }

void orders_differ() {
  std::vector<std::vector<int>> orders;
  for (int i = 0; i < 2; i++) {
    const Array<int> counter(1), order(64);
    counter[0] = 0;
    launch(count_in_order, 1, 64, 0, nullptr, counter.data, order.data);
    orders.emplace_back(order.data, order.data + 64);
    CHECK(counter[0] == 64);
  }
  CHECK(orders[0] != orders[1]);
}

__global__ void look_at_shared(unsigned* to) {
  __shared__ unsigned fixed[8];
  unsigned* dynamic = dynamic_shared<unsigned>();
  if (threadIdx.x == 0) {
    to[2 * blockIdx.x] = fixed[5];
    to[2 * blockIdx.x + 1] = dynamic[99];
    fixed[5] = dynamic[99] = 0;
  }
}

thread_local int kept = 23;

void shared_memory_is_new() {
  const Array<unsigned> found(8);
  kept++;
  launch(look_at_shared, 4, 32, 400, nullptr, found.data);
  for (size_t i = 0; i < 8; i++) CHECK((with_address_sanitizer && i % 2 == 0) || found[i] == full);
  CHECK(kept == 24);
}

// --- instructions ---

// D [16][8] = A [16][16] · B [16][8], through shared memory.
__global__ void multiply(const uint16_t* a, const uint16_t* b, const uint16_t* b_transposed, float* d) {
  auto* rows = dynamic_shared<uint16_t>();
  const int lane = int(threadIdx.x);
  for (int i = lane; i < 256; i += 32) rows[i] = a[i];
  for (int i = lane; i < 128; i += 32) rows[256 + i] = b[i], rows[384 + i] = b_transposed[i];
  __syncwarp();
  uint32_t left[4], right[2], right_again[2], left_again[4];
  load_matrices(left, rows + (lane % 16) * 16 + lane / 16 * 8);
  load_matrices_transposed(right, rows + 256 + (lane % 16) * 8);
  load_matrices(right_again, rows + 384 + lane % 8 * 16 + lane / 8 % 2 * 8);
  load_matrices_transposed(left_again, rows + (lane % 16) * 16 + lane / 16 * 8);
  float sums[4] = {1, 2, 3, 4};
  multiply_add(sums, left, right);
  for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = sums[i];
  d[128 + lane] = float(right[0] == right_again[0] && right[1] == right_again[1]);
  for (int i = 0; i < 4; i++) d[160 + 4 * lane + i] = float(left_again[i] & 0xFFFF);
}

void matrices() {
  const Array<uint16_t> a(256), b(128), b_transposed(128);
  const Array<float> d(288);
  const auto value = [](uint32_t i) { return float(int(gigpo::philox({4, 4}, i, 0, 0, 0).word[0] % 65) - 32) / 8; };
  for (uint32_t i = 0; i < 256; i++) a[i] = __bfloat16_as_ushort(__float2bfloat16_rn(value(i)));
  for (uint32_t k = 0; k < 16; k++)
    for (uint32_t n = 0; n < 8; n++)
      b[k * 8 + n] = b_transposed[n * 16 + k] = __bfloat16_as_ushort(__float2bfloat16_rn(value(1000 + k * 8 + n)));
  launch(multiply, 1, 32, 1024, nullptr, a.data, b.data, b_transposed.data, d.data);
  for (uint32_t m = 0; m < 16; m++)
    for (uint32_t n = 0; n < 8; n++) {
      float sum = float(1 + n % 2 + 2 * (m / 8));
      for (uint32_t k = 0; k < 16; k++) sum += value(m * 16 + k) * value(1000 + k * 8 + n);
      CHECK(d[m * 8 + n] == sum, "%g, not %g", d[m * 8 + n], sum);
    }
  for (size_t lane = 0; lane < 32; lane++) {
    CHECK(d[128 + lane] == 1);
    for (size_t i = 0; i < 4; i++)  // element (l / 4, 2 (l % 4)) of the transposed matrix i
      CHECK(d[160 + 4 * lane + i] == float(a[(2 * (lane % 4) + i % 2 * 8) * 16 + lane / 4 + i / 2 * 8]));
  }
}

__global__ void copy_groups(const uint32_t* from, uint32_t* to) {
  auto* shared = dynamic_shared<uint32_t>();
  const auto look = [&](int step) {
    for (int group = 0; group < 4; group++) to[step * 4 + group] = shared[4 * group + 3];
  };
  for (int group = 0; group < 3; group++) {
    copy_async_16(shared + 4 * group, from + 4 * group, group != 1);
    copy_async_commit();
  }
  copy_async_16(shared + 12, from + 12, true);
  look(0);
  copy_async_wait<2>();
  look(1);
  copy_async_wait<0>();
  look(2);
  copy_async_commit();
  copy_async_wait<0>();
  look(3);
}

void asynchronous_copies() {
  const Array<uint32_t> from(16), found(16);
  for (uint32_t i = 0; i < 16; i++) from[i] = i;
  launch(copy_groups, 1, 1, 64, nullptr, from.data, found.data);
  const uint32_t expected[16] = {full, full, full, full, 3, full, full, full, 3, 0, 11, full, 3, 0, 11, 15};
  for (size_t i = 0; i < 16; i++) CHECK(found[i] == expected[i], "step %d, group %d: %#x", int(i / 4), int(i % 4), found[i]);
}

void numbers() {
  for (uint32_t i = 0; i < 100000; i++) {
    const uint32_t bits = gigpo::philox({1, 2}, i, 0, 0, 0).word[0];
    const float x = i < 8 ? __uint_as_float(0x3F800000u + i * 0x8000u) : __uint_as_float(bits), y = __bfloat162float(__float2bfloat16_rn(x));
    if (std::isnan(x)) {
      CHECK(std::isnan(y));
      continue;
    }
    const uint16_t down = uint16_t(__float_as_uint(x) >> 16);
    const float low = __bfloat162float(__ushort_as_bfloat16(down)), high = __bfloat162float(__ushort_as_bfloat16(uint16_t(down + 1)));
    const double to_low = std::abs(double(x) - low), to_high = std::abs((std::isinf(high) ? std::copysign(0x1p128, x) : double(high)) - x);
    const bool takes_low = std::isinf(x) || to_low < to_high || (to_low == to_high && down % 2 == 0);
    CHECK(y == (takes_low ? low : high), "%a became %a", x, y);
  }
  CHECK(pack_bf16(1, -2) == 0xC0003F80u);
  CHECK(__funnelshift_r(0x89ABCDEFu, 0x01234567u, 8) == 0x6789ABCDu && __funnelshift_l(0x89ABCDEFu, 0x01234567u, 8) == 0x23456789u);
  CHECK(__umulhi(0xFFFFFFFFu, 0xFFFFFFFFu) == 0xFFFFFFFEu && __umul64hi(~0ull, 3) == 2);
  CHECK(__popc(0xF0F0u) == 8 && __ffs(0) == 0 && __ffs(8) == 4 && __clz(0) == 32 && __clz(1) == 31 && __clzll(1) == 63);
}

// --- mistakes ---

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
                                {barrier_for_some, 64, "emulator_test.cu"},
                                {shuffle_with_the_dead, 32, "__shfl_xor_sync"},
                                {shuffle_with_the_dead, 7, "not there"},
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

void mistakes_end_the_program() {
  for (size_t i = 0; i < std::size(mistakes); i++) {
    if (!(with_address_sanitizer ? mistakes[i].with_address_sanitizer : mistakes[i].without)) continue;
    const Outcome found = outcome("mistake", i);
    CHECK((found.aborted || found.wrong) && found.said.find(mistakes[i].message) != std::string::npos,
          "expected \"%s\", found \"%s\"", mistakes[i].message, found.said.c_str());
  }
}

// Each right, and without what makes it so.
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
// The next step's copies overtake the last step's reads.
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

struct Race {
  void (*right)(const int*, int*);
  void (*wrong)(const int*, int*);
  bool shows;  // in the result, which is 255, 254 … 0 where right
};

constexpr Race race_cases[] = {{reverse<true>, reverse<false>, true},
                               {reverse_warps<true>, reverse_warps<false>, true},
                               {reverse_copies<true>, reverse_copies<false>, true},
                               {two_copies<true>, two_copies<false>, false},
                               {count_blocks<true>, count_blocks<false>, false}};

int race(void (*kernel)(const int*, int*)) {
  const Array<int> to(4 * 256), from(256);
  for (int i = 0; i < 256; i++) from[size_t(i)] = i;
  launch(kernel, 4, 256, 1024, nullptr, from.data, to.data);
  bool right = true;
  for (int i = 0; i < 4 * 256; i++) right &= to[size_t(i)] == 255 - i % 256;
  return right ? 0 : 1;
}

void races_show() {
  for (size_t i = 0; i < std::size(race_cases); i++) {
    const Outcome right = outcome("right", i), wrong = outcome("wrong", i);
    CHECK(wrong.wrong || !(race_cases[i].shows || finds_races), "race %d", int(i));
    CHECK(!right.wrong || !race_cases[i].shows, "race %d: %s", int(i), right.said.c_str());
    CHECK(right.said.find("data race") == std::string::npos, "race %d: %s", int(i), right.said.c_str());
    CHECK(!finds_races || wrong.said.find("data race") != std::string::npos, "race %d", int(i));
  }
}

// --- the runtime ---

__global__ void add(int* to, int value) { *to += value; }

void memory_runs_out() {
  emulator::memory_limit = 1 << 20;
  void *first = nullptr, *second = nullptr;
  size_t free_bytes = 0, total = 0;
  CHECK(cudaMalloc(&first, 1 << 19) == cudaSuccess);
  CHECK(cudaMalloc(&second, (1 << 19) + 1) == cudaErrorMemoryAllocation && second == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes == 1 << 19 && total == 1 << 20);
  CHECK(cudaFree(static_cast<char*>(first) + 16) == cudaErrorInvalidValue && cudaFree(first) == cudaSuccess);
  CHECK(cudaMalloc(&second, 1 << 20) == cudaSuccess && cudaFree(second) == cudaSuccess);
  emulator::memory_limit = size_t{4} << 30;
}

void copies_know_their_memory() {
  const Array<int> device(4);
  int host[5] = {1, 2, 3, 4, 5};
  CHECK(cudaMemcpy(device.data, host, 16, cudaMemcpyHostToDevice) == cudaSuccess && device[3] == 4);
  CHECK(cudaMemcpy(device.data, host, 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, device.data, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(device.data, 0, 17) == cudaErrorInvalidValue && cudaMemset(device.data, 0, 16) == cudaSuccess);
  CHECK(cudaMemcpy2D(host, 8, device.data, 8, 4, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[0] == 0 && host[1] == 2 && host[2] == 0 && host[3] == 4);
  cudaGetLastError();
}

void streams_are_late() {
  const Array<int> device(1);
  device[0] = 0;
  cudaStream_t one, two;
  cudaEvent_t event;
  int* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(int)));
  CUDA_CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreate(&event));
  launch(add, 1, 1, 0, one, device.data, 5);
  CUDA_CHECK(cudaEventRecord(event, one));
  launch(add, 1, 1, 0, one, device.data, 100);
  CUDA_CHECK(cudaMemcpyAsync(pinned, device.data, sizeof(int), cudaMemcpyDeviceToHost, two));
  CHECK(device[0] == 0 && *pinned == -1);
  CUDA_CHECK(cudaStreamSynchronize(two));
  CHECK(*pinned == 0);  // it did not wait for the other stream
  CUDA_CHECK(cudaStreamWaitEvent(two, event));
  CUDA_CHECK(cudaMemcpyAsync(pinned, device.data, sizeof(int), cudaMemcpyDeviceToHost, two));
  CUDA_CHECK(cudaStreamSynchronize(two));
  CHECK(*pinned == 5);
  CUDA_CHECK(cudaDeviceSynchronize());
  CHECK(device[0] == 105);
  int pageable = 7;
  CUDA_CHECK(cudaMemcpyAsync(device.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, one));
  *pinned = pageable = 9;  // the first was staged at once
  CUDA_CHECK(cudaStreamSynchronize(one));
  CHECK(device[0] == 7);
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(one));
  CUDA_CHECK(cudaStreamDestroy(two));
  CUDA_CHECK(cudaFreeHost(pinned));
}

void graphs_replay() {
  const Array<int> device(1);
  device[0] = 0;
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  void* pointer = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int value = 3;
  launch(add, 1, 1, 0, stream, device.data, value);
  value = 1000;  // the graph has its own
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(other, fork));
  launch(add, 1, 1, 0, other, device.data, 4);
  CUDA_CHECK(cudaEventRecord(join, other));
  CUDA_CHECK(cudaStreamWaitEvent(stream, join));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(device[0] == 0);
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; i++) CUDA_CHECK(cudaGraphLaunch(executable, stream));
  CHECK(device[0] == 0);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CHECK(device[0] == 21);
  CUDA_CHECK(cudaGraphExecDestroy(executable));

  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMalloc(&pointer, 16) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMalloc(&pointer, 16) == cudaSuccess && cudaFree(pointer) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  CUDA_CHECK(cudaEventDestroy(fork));
  CUDA_CHECK(cudaEventDestroy(join));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaStreamDestroy(other));
}

struct Test {
  const char* name;
  void (*run)();
};

constexpr Test tests[] = {{"grids and blocks", grids_and_blocks},
                          {"shuffles", shuffles},
                          {"votes", votes},
                          {"random order", orders_differ},
                          {"shared memory", shared_memory_is_new},
                          {"matrices", matrices},
                          {"asynchronous copies", asynchronous_copies},
                          {"numbers", numbers},
                          {"mistakes", mistakes_end_the_program},
                          {"races", races_show},
                          {"device memory", memory_runs_out},
                          {"copies", copies_know_their_memory},
                          {"streams", streams_are_late},
                          {"graphs", graphs_replay}};

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) {
    const std::string table = arguments[1];
    const size_t index = std::strtoull(arguments[2], nullptr, 10);
    if (table == "mistake") return make_mistake(mistakes[index]);
    return race(table == "right" ? race_cases[index].right : race_cases[index].wrong);
  }
  for (const Test& test : tests) {
    std::printf("%s\n", test.name);
    test.run();
  }
  return gigpo::test::report();
}
