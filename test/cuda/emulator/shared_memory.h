// Shared memory is new to every block. Static arrays (`__shared__ float x[32]`) are thread_local variables, all in one piece
// of memory with what else is thread_local in the program, except under AddressSanitizer, which guards each.
#pragma once
#include <cstddef>
#include <vector>

namespace gigpo::cuda::emulator {

// Keeps what thread_local variables hold while kernels use their memory.
class KeptStaticMemory {
 public:
  KeptStaticMemory();
  ~KeptStaticMemory();
  KeptStaticMemory(const KeptStaticMemory&) = delete;

 private:
  std::vector<char> values;
};

// Fills static memory and these bytes with 0xFF; what earlier blocks did there is forgotten.
void fill_shared(char* dynamic, size_t bytes);

bool in_static_shared(const void* pointer);

}  // namespace gigpo::cuda::emulator
