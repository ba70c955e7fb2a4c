// cuda/cublaslt_choices.h with the fake cuBLASLt, whose path is the argument: which products are timed, which choices
// are stored for the next process (a second MatmulLibrary, which sees the same), and which files are rejected.
#include "cuda/cublaslt_choices.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cuda/cublaslt.h"
#include "cuda/user_cache.h"
#include "test/cuda/fake_library.h"
#include "test/cuda/matmul_case.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;
using cuda::MatmulLibrary;

namespace {

#ifdef GIGPO_CUDA_EMULATOR

std::string fake_path;  // its path
constexpr long candidates = 3, timings = 4 * candidates;

std::unique_ptr<MatmulLibrary> opened() {
  std::string why_not;
  auto library = MatmulLibrary::open(&why_not);
  CHECK(library, "%s", why_not.c_str());
  return library;
}

// Products of one device, with counts of the calls to the library.
struct Process {
  explicit Process(const FakeLibrary& fake) : fake(fake), library(opened()) {}

  // Returns the bits of a product, which must be correct; checks the numbers of calls.
  std::vector<uint32_t> multiply(const Case& c, long searches, long checks, long products) {
    const long before[] = {fake.get("searches"), fake.get("checks"), fake.get("products")};
    const auto take = [&](const cuda::Matmul& product, void* workspace, size_t bytes) {
      CHECK(library->matmul(product, workspace, bytes, nullptr));
    };
    const std::vector<uint32_t> bits = run(c, take);
    const long made[] = {fake.get("searches") - before[0], fake.get("checks") - before[1], fake.get("products") - before[2]};
    CHECK(made[0] == searches && made[1] == checks && made[2] == products, "%ld searches, %ld checks, %ld products", made[0],
          made[1], made[2]);
    check_case(c, take);
    return bits;
  }
  std::vector<uint32_t> times(const Case& c) { return multiply(c, 1, 0, timings + 1); }
  std::vector<uint32_t> restores(const Case& c) { return multiply(c, 0, 1, 1); }
  long algorithm() const { return fake.get("algorithm"); }

  const FakeLibrary& fake;
  std::unique_ptr<MatmulLibrary> library;
};

Case product(int64_t tokens) {
  Case c;
  c.m = tokens, c.n = 32, c.k = 40, c.transpose_b = true, c.workspace = true;
  return c;
}
Case gradient(int64_t tokens) {
  Case c;
  c.m = 24, c.n = 32, c.k = tokens, c.transpose_a = true, c.workspace = true;
  c.added = Added::same;
  return c;
}

// Fake library with three algorithms, of which the last is the fastest, and an empty cache.
struct Fresh : FakeLibrary {
  Fresh() : FakeLibrary(fake_path) {
    set("candidates", candidates);
    set("fastest", 2);
  }
  ~Fresh() {
    set("candidates", 1);
    set("fastest", 0);
  }
};

// Path of the file with the choices of the fake library.
std::string only_file() {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(cuda::user_cache())) {
    CHECK(found.empty(), "%s and %s are both in the cache", found.c_str(), entry.path().c_str());
    found = entry.path().string();
  }
  return found;
}

void test_timed_once() {
  const Fresh fake;
  const Case bias = {.c_type = Type::bf16, .transpose_b = true, .m = 24, .n = 32, .k = 40, .bias = true, .workspace = true};
  Case added = product(24);
  added.added = Added::other;
  const Case all[] = {product(24), gradient(40), bias, added};
  std::vector<std::vector<uint32_t>> bits;
  {
    Process first(fake);
    for (const Case& c : all) {
      bits.push_back(first.times(c));
      CHECK(first.algorithm() == 2);
      CHECK(first.multiply(c, 0, 0, 1) == bits.back());
    }
  }
  fake.set("fastest", 0);  // the first algorithm would be found now
  Process second(fake);
  int i = 0;
  for (const Case& c : all) {
    CHECK(second.restores(c) == bits[i++]);
    CHECK(second.algorithm() == 2);
  }
  CHECK(second.library->kept_choices() == "kept in " + only_file());
}

// Adjacent numbers of tokens share a choice, so that not every micro-batch is timed.
void test_ranges_of_tokens() {
  const Fresh fake;
  Process process(fake);
  process.times(product(265));  // 257 to 288
  for (const int64_t tokens : {257, 288}) process.restores(product(tokens));
  process.times(product(256));
  process.times(product(289));
  process.times(gradient(97));  // 97 to 104
  process.restores(gradient(104));
  process.times(gradient(96));
  Case wider = product(265);
  wider.n = 40;
  process.times(wider);
}

// An algorithm that is equally fast does not replace the first.
void test_ties() {
  const Fresh fake;
  fake.set("fastest", -1);
  Process process(fake);
  process.times(product(24));
  CHECK(process.algorithm() == 0);
}

void test_two_devices() {
  const Fresh fake;
  Process one(fake), other(fake);
  one.times(product(24));
  other.restores(product(24));
  other.times(product(48));
  one.restores(product(48));
}

void test_other_library_version() {
  const Fresh fake;
  Process(fake).times(product(24));
  const std::string own = only_file(), text = *cuda::read_file(own);
  CHECK(text.find("compute ") != std::string::npos && text.find("driver ") != std::string::npos &&
        text.find("cuBLASLt 13.0.1") != std::string::npos, "%s", text.c_str());
  fake.set("version", 120804);
  fake.set("fastest", 1);
  Process(fake).times(product(24));
  CHECK(fake.get("algorithm") == 1);
  std::string others;
  for (const auto& entry : std::filesystem::directory_iterator(cuda::user_cache())) {
    if (entry.path().string() != own) others = entry.path().string();
  }
  fake.set("version", 130001);
  Process(fake).restores(product(24));
  CHECK(fake.get("algorithm") == 2);
  std::filesystem::rename(others, own);  // replaces this file by another device's
  Process(fake).times(product(24));
  CHECK(fake.get("algorithm") == 1);
  CHECK(cuda::read_file(own)->find("cuBLASLt 13.0.1") != std::string::npos);
}

void test_damaged_file() {
  const Fresh fake;
  Process(fake).times(product(24));
  const std::string path = only_file(), text = *cuda::read_file(path);
  const auto ignored = [&](const std::string& torn) {
    CHECK(cuda::replace_file(path, torn).empty());
    Process(fake).times(product(24));
    CHECK(cuda::read_file(path) == text);
  };
  for (size_t bytes = 0; bytes < text.size(); bytes += 61) ignored(text.substr(0, bytes));
  ignored(text.substr(0, text.size() - 1));
  ignored(std::string(text.size(), '\0'));
  std::string changed = text;
  changed[text.find("\n24 ") + 1] = '3';
  ignored(changed);
}

void test_stored_choice_refused() {
  const Fresh fake;
  Process(fake).times(product(24));
  fake.set("refuse_known", 1);
  Process(fake).multiply(product(24), 1, 1, 1);
  CHECK(fake.get("algorithm") == 0);
  fake.set("refuse_known", 0);
  Process(fake).restores(product(24));
}

void test_unwritable_cache() {
  const Fresh fake;
  const std::string in_the_way = fake.cache.path + "/file";
  CHECK(cuda::replace_file(in_the_way, "").empty());
  setenv("XDG_CACHE_HOME", in_the_way.c_str(), 1);
  Process process(fake);
  process.times(product(24));
  process.restores(product(23));  // in this process
  CHECK(process.library->kept_choices().find("cannot be written") != std::string::npos);

  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", fake.cache.path.c_str(), 1);
  CHECK(cuda::user_cache() == fake.cache.path + "/.cache/gigpo");
  unsetenv("HOME");
  CHECK(Process(fake).library->kept_choices().find("neither XDG_CACHE_HOME nor HOME") != std::string::npos);
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

// A choice that could not be measured is stored, too: another one in the next process would change bits of a resumed run.
void check_kept_for_the_next_process(const Fresh& fake, Run& r) {
  Process next(fake);
  const long products = fake.get("products");
  CHECK(next.library->matmul(r.product, nullptr, 0, nullptr));
  CHECK(fake.get("products") == products + 1, "%ld products", fake.get("products") - products);
}

// Products cannot be timed while a stream is captured.
void test_captured_stream() {
  const Fresh fake;
  Process process(fake);
  Run r(product(24));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const long products = fake.get("products");
  CHECK(process.library->matmul(r.product, nullptr, 0, stream));
  CHECK(fake.get("products") == products + 1);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
  check_kept_for_the_next_process(fake, r);
}

// A gradient that is accumulated is timed in separate memory; without memory for that, it is not timed.
void test_no_memory_for_timing() {
  const Fresh fake;
  Process process(fake);
  Case c = gradient(40);
  c.m = c.n = 512;
  Run r(c);
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  void* taken = nullptr;
  CUDA_CHECK(cudaMalloc(&taken, free - (size_t{512} << 10)));
  const long products = fake.get("products");
  CHECK(process.library->matmul(r.product, nullptr, 0, nullptr));
  CHECK(fake.get("products") == products + 1 && process.algorithm() == 0);
  CUDA_CHECK(cudaFree(taken));
  CHECK(cudaGetLastError() == cudaSuccess);
  check_kept_for_the_next_process(fake, r);
}

// Descriptors are cached; the addresses in them are not.
void test_other_bias() {
  const Fresh fake;
  Run r({.c_type = Type::bf16, .transpose_b = true, .m = 24, .n = 32, .k = 40, .bias = true});
  Matrix other(Type::bf16, 1, 32, 32, 0);
  other.fill(9);
  const auto bits = [&](const Process& process, const Matrix& bias) {
    r.product.bias = bias.view();
    CHECK(process.library->matmul(r.product, nullptr, 0, nullptr));
    bool clean;
    return r.out.read(&clean);
  };
  const Process process(fake);
  const std::vector<uint32_t> before = bits(process, r.bias);
  const long creates = fake.get("creates");
  const std::vector<uint32_t> after = bits(process, other);
  CHECK(fake.get("creates") == creates);
  CHECK(after != before && after == bits(Process(fake), other));
}

#endif

}  // namespace

int main(int argc, char** argv) {
#ifdef GIGPO_CUDA_EMULATOR
  CHECK(argc > 1, "the argument must be the path of the fake library");
  if (argc < 2) return report();
  fake_path = argv[1];
  choose_library(fake_path);
  return on_card(std::initializer_list<Test>{{"timed once", test_timed_once},
                                             {"ranges of tokens", test_ranges_of_tokens},
                                             {"ties", test_ties},
                                             {"two devices", test_two_devices},
                                             {"file of another library version", test_other_library_version},
                                             {"damaged file", test_damaged_file},
                                             {"stored choice refused", test_stored_choice_refused},
                                             {"cache not writable", test_unwritable_cache},
                                             {"captured stream", test_captured_stream},
                                             {"no memory for timing", test_no_memory_for_timing},
                                             {"other bias", test_other_bias}});
#else
  (void)argc, (void)argv;
  std::printf("skipped: only the fake library counts its calls\n");
  return 0;
#endif
}
