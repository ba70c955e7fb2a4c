// Shared memory is fresh for every block. Static arrays (`__shared__ float x[32]`) are thread_local variables,
// contiguous with all other thread_local variables of the program, except under AddressSanitizer, which guards each.
#pragma once
#include <cstddef>
#include <vector>

namespace gigpo::cuda::emulator {

// Saves and restores the values of thread_local variables while kernels use their memory.
class KeptStaticMemory {
 public:
  KeptStaticMemory();
  ~KeptStaticMemory();
  KeptStaticMemory(const KeptStaticMemory&) = delete;

 private:
  std::vector<char> values;
};

// Fills static memory and these bytes with 0xFF, and discards the access history of earlier blocks.
void fill_shared(char* dynamic, size_t bytes);

bool in_static_shared(const void* pointer);

}  // namespace gigpo::cuda::emulator
