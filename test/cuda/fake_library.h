// Interface of tests to the fake cuBLASLt (test/cuda/fake_cublaslt.cpp).
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "test/core/check.h"
#ifdef GIGPO_CUDA_EMULATOR
#include "test/cuda/emulator/streams.h"
#endif

namespace gigpo::test {

// Sets the library that devices open from now on: a path, or "off".
inline void choose_library(const std::string& path) { setenv("GIGPO_CUBLASLT", path.c_str(), 1); }

#ifdef GIGPO_CUDA_EMULATOR

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "gigpo-XXXXXX").string();
    if (CHECK(mkdtemp(name.data()), "%s cannot be created", name.c_str())) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;

  std::string path;
};

// The fake library, in the same instance that a device loads, because both use the same file. Its products are queued
// on the emulator's streams and recorded with other work. Algorithm choices are stored in a temporary folder.
struct FakeLibrary {
  explicit FakeLibrary(const std::string& path) : library(dlopen(path.c_str(), RTLD_NOW)) {
    if (library) {
      set = reinterpret_cast<void (*)(const char*, long)>(dlsym(library, "fake_cublaslt_set"));
      get = reinterpret_cast<long (*)(const char*)>(dlsym(library, "fake_cublaslt_get"));
    }
    CHECK(*this, "%s is not the fake library", path.c_str());
    if (!*this) return;
    set("enqueue", reinterpret_cast<long>(&enqueue));
    set("spend", reinterpret_cast<long>(&spend));
    setenv("XDG_CACHE_HOME", cache.path.c_str(), 1);
  }
  explicit operator bool() const { return set && get; }

  const TemporaryFolder cache;
  void* library;
  void (*set)(const char*, long) = nullptr;
  long (*get)(const char*) = nullptr;

 private:
  static void enqueue(void* stream, std::function<void()> work) {
    cuda::emulator::enqueue(static_cast<cudaStream_t>(stream), std::move(work));
  }
  static void spend() { cuda::emulator::spent += std::chrono::minutes(1); }
};

#endif

}  // namespace gigpo::test
