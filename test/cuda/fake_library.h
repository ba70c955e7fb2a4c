// The stand-in for cuBLASLt (test/cuda/fake_cublaslt.cpp) as tests see it.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "test/core/check.h"
#ifdef GIGPO_CUDA_EMULATOR
#include "test/cuda/emulator/streams.h"
#endif

namespace gigpo::test {

// What devices find from now on: a path, or "off".
inline void choose_library(const std::string& path) { setenv("GIGPO_CUBLASLT", path.c_str(), 1); }

#ifdef GIGPO_CUDA_EMULATOR

// The same object that a device loads, since both name the same file. Its products are queued on the emulator's streams, and
// recorded with what else is.
struct FakeLibrary {
  explicit FakeLibrary(const std::string& path) : library(dlopen(path.c_str(), RTLD_NOW)) {
    if (library) {
      set = reinterpret_cast<void (*)(const char*, long)>(dlsym(library, "fake_cublaslt_set"));
      get = reinterpret_cast<long (*)(const char*)>(dlsym(library, "fake_cublaslt_get"));
    }
    CHECK(*this, "%s is not the stand-in library", path.c_str());
    if (*this) set("enqueue", reinterpret_cast<long>(&enqueue));
  }
  explicit operator bool() const { return set && get; }

  void* library;
  void (*set)(const char*, long) = nullptr;
  long (*get)(const char*) = nullptr;

 private:
  static void enqueue(void* stream, std::function<void()> work) {
    cuda::emulator::enqueue(static_cast<cudaStream_t>(stream), std::move(work));
  }
};

#endif

}  // namespace gigpo::test
