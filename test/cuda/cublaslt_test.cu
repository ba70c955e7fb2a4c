// cuda/cublaslt.h. On a GPU: the installed library, if any, against sums in double. In the emulator: the fake library
// (test/cuda/fake_cublaslt.cpp), whose path is this program's argument, without faults and with each fault that `open`
// must detect.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/device.h"
#include "core/device_report.h"
#include "cuda/cublaslt.h"
#include "cuda/cublaslt_open.h"
#include "test/cuda/fake_library.h"
#include "test/cuda/matmul_case.h"
#ifdef GIGPO_CUDA_EMULATOR
#include "test/cuda/emulator/kernel_names.h"
#endif

using namespace gigpo;
using namespace gigpo::test;
using cuda::MatmulLibrary;

namespace {

// Number of `count` random products that the library accepted. For refused ones C must be unchanged, and this package's
// kernels compute them.
int check_products(MatmulLibrary& library, uint32_t count) {
  int taken = 0;
  for (uint32_t i = 0; i < count; i++) {
    check_case(random_case(i), [&](const cuda::Matmul& product, void* workspace, size_t bytes) {
      if (library.matmul(product, workspace, bytes, nullptr)) taken++;
      else cuda::matmul(product, workspace, bytes, nullptr);
    });
  }
  return taken;
}

#ifdef GIGPO_CUDA_EMULATOR

// Checks that no library is used, with a reason that contains `part`.
void expect_none(const std::string& part) {
  std::string why_not;
  const auto library = MatmulLibrary::open(&why_not);
  CHECK(!library, "expected: %s", part.c_str());
  CHECK(why_not.find(part) != std::string::npos, "\"%s\" does not say \"%s\"", why_not.c_str(), part.c_str());
}

void test_no_library() {
  choose_library("off");
  expect_none("GIGPO_CUBLASLT is off");
  choose_library("/nowhere/libcublasLt.so.13");
  expect_none("/nowhere/libcublasLt.so.13");
  choose_library("/tmp");  // a folder without it
  expect_none("/tmp/libcublasLt.so.12");
  choose_library("libm.so.6");  // a library without its functions
  expect_none("it has no cublasLtGetVersion");
  unsetenv("GIGPO_CUBLASLT");
  std::string why_not;
  if (!MatmulLibrary::open(&why_not)) CHECK(why_not.find("libcublasLt.so.13") != std::string::npos, "%s", why_not.c_str());
}

void test_faults(const FakeLibrary& fake) {
  const auto with = [&](const char* setting, long value, const char* reason) {
    const long healthy = fake.get(setting);
    fake.set(setting, value);
    expect_none(reason);
    fake.set(setting, healthy);
    CHECK(fake.get("objects") == 0, "%s leaves %ld", setting, fake.get("objects"));
  };
  with("version", 110103, "version 11.1.3, not 12 or 13");
  with("version", 140000, "version 14.0.0");
  with("create", 1, "cublasLtCreate returned 1");
  with("refuse", 1, "it has no algorithm for 128 x 128 x 128");
  with("multiply", 13, "it has no algorithm");
  with("off_by_one", 1, "wrong product of 128 x 128 x 128");
  with("no_bias", 1, "wrong product of");
  with("no_beta", 1, "wrong product of");
}

void test_health(const FakeLibrary& fake, const std::string& path) {
  fake.set("version", 120804);
  std::string why_not;
  auto library = MatmulLibrary::open(&why_not);
  CHECK(library && why_not.empty(), "%s", why_not.c_str());
  if (!library) return;
  CHECK(library->version() == "12.8.4");
  CHECK(library->path() == path);
  const int taken = check_products(*library, 96);
  CHECK(taken > 24 && taken < 96, "%d taken", taken);

  // A repeated product needs no new search and no new descriptors; one with another alignment does.
  Case c;
  c.m = 24, c.n = 32, c.k = 40, c.transpose_b = true, c.c_type = Type::bf16;
  const auto multiply = [&](const cuda::Matmul& product, void* workspace, size_t bytes) {
    CHECK(library->matmul(product, workspace, bytes, nullptr));
  };
  check_case(c, multiply);
  const long searches = fake.get("searches"), creates = fake.get("creates");
  check_case(c, multiply);
  CHECK(fake.get("searches") == searches && fake.get("creates") == creates);
  c.offset = 8;
  check_case(c, multiply);
  CHECK(fake.get("searches") == searches + 1);
  CHECK(fake.get("creates") == creates + 6, "%ld made", fake.get("creates") - creates);  // operation, layouts, preference

  // Products that are left to this package's kernels: k of 0, unaligned pointers, a call that fails, including the
  // calls after it.
  const auto outcome = [&](const Case& tried) {
    bool taken_over = true;
    bool untouched = true;
    for (const uint32_t bits : run(tried, [&](const cuda::Matmul& p, void*, size_t) {
           taken_over = library->matmul(p, nullptr, 0, nullptr);
         }))
      untouched = untouched && bits == (tried.c_type == Type::bf16 ? 0xFFFF : 0xFFFFFFFF);
    return taken_over ? 1 : untouched ? 0 : -1;
  };
  Case empty = c;
  empty.m = 0;
  CHECK(outcome(empty) == 1);
  empty = c, empty.k = 0;
  CHECK(outcome(empty) == 0);
  Case odd = c;
  odd.offset = 1;
  CHECK(outcome(odd) == 0);
  Case failing = c;
  failing.m = 25;
  fake.set("multiply", 13);
  CHECK(outcome(failing) == 0);
  fake.set("multiply", 0);
  const long products = fake.get("products");
  CHECK(outcome(failing) == 0);
  CHECK(fake.get("products") == products);

  library.reset();
  CHECK(fake.get("objects") == 0, "%ld leaked", fake.get("objects"));
}

// A product that the library refuses is computed by wgmma where that pays.
void test_refused_product(const FakeLibrary& fake) {
  const auto device = make_cuda_device({});
  CHECK(device->without_library().empty());
  Case large = {.c_type = Type::bf16, .transpose_b = true, .m = 512, .n = 1024, .k = 512};
  const auto kernel_of = [&](const Case& c) {
    check_case(c, [&](const cuda::Matmul& p, void*, size_t) { device->linear(p.a, p.b, p.bias, p.added, p.c); });
    return std::string(cuda::emulator::kernel_name(cuda::emulator::last_kernel));
  };
  fake.set("multiply", 13);
  const std::string name = kernel_of(large);
  CHECK(name.find("wgmma_kernel") == 0, "%s", name.c_str());
  large.m = 64;
  CHECK(kernel_of(large).find("matmul_kernel") == 0);
  fake.set("multiply", 0);
}

// The installation of the first python3 on the PATH is searched: a virtual environment, and where its python3 links to.
void test_search_beside_python() {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("gigpo-python-" + std::to_string(getpid()));
  const std::string before = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (const char* name : {"real", "environment"}) {
    const fs::path library = root / name / "lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13";
    fs::create_directories(library.parent_path());
    fs::create_directories(root / name / "bin");
    std::ofstream(library) << "not a library";
  }
  std::ofstream(root / "real/bin/python3") << "";
  fs::create_symlink(root / "real/bin/python3", root / "environment/bin/python3");
  setenv("PATH", ("/nowhere:" + (root / "environment/bin").string() + ":" + before).c_str(), 1);
  const std::vector<std::string> paths = cuda::library_candidates();
  setenv("PATH", before.c_str(), 1);
  for (const char* name : {"real", "environment"}) {
    const std::string expected = (root / name / "lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13").string();
    CHECK(std::find(paths.begin(), paths.end(), expected) != paths.end(), "%s is not searched", expected.c_str());
  }
  fs::remove_all(root);
}

#endif

}  // namespace

int main(int argc, char** argv) {
  const DeviceReport devices = device_report();
  if (devices.unavailable != Unavailable::none) {
    std::printf("skipped: %s\n", devices.message.c_str());
    return 0;
  }
#ifdef GIGPO_CUDA_EMULATOR
  CHECK(argc > 1, "the argument must be the path of the fake library");
  if (argc < 2) return report();
  test_no_library();
  const FakeLibrary fake(argv[1]);
  if (!fake) return report();
  choose_library(argv[1]);
  test_faults(fake);
  test_health(fake, argv[1]);
  test_refused_product(fake);
  test_search_beside_python();
#else
  (void)argc, (void)argv;
  std::string why_not;
  const auto library = MatmulLibrary::open(&why_not);
  if (!library) std::printf("no cuBLASLt: %s\n", why_not.c_str());
  else std::printf("cuBLASLt %s took %d of 96\n", library->version().c_str(), check_products(*library, 96));
#endif
  return report();
}
