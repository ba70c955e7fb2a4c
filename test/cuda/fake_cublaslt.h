// The library that stands in for cuBLASLt in the emulator (fake_cublaslt.cpp), made the one that this process finds.
#pragma once
#include <dlfcn.h>

#include <cstdlib>

#include "test/cuda/emulator/streams.h"

namespace gigpo::test {

// The same object that `MatmulLibrary::open` loads, since both name the same file.
struct FakeLibrary {
  explicit FakeLibrary(const char* path) : library(*path ? dlopen(path, RTLD_NOW) : nullptr) {
    if (!library) return;
    set = reinterpret_cast<void (*)(const char*, long)>(dlsym(library, "fake_cublaslt_set"));
    get = reinterpret_cast<long (*)(const char*)>(dlsym(library, "fake_cublaslt_get"));
    using Queue = void (*)(void* stream, std::function<void()> work);
    const auto use = reinterpret_cast<void (*)(Queue)>(dlsym(library, "fake_cublaslt_queue"));
    if (!set || !get || !use) return;
    use([](void* stream, std::function<void()> work) {
      CUDA_CHECK(cuda::emulator::enqueue(static_cast<cudaStream_t>(stream), std::move(work)));
    });
    setenv("GIGPO_CUBLASLT", path, 1);
    found = true;
  }

  void* library;
  void (*set)(const char*, long) = nullptr;
  long (*get)(const char*) = nullptr;
  bool found = false;
};

}  // namespace gigpo::test
