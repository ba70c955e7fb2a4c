// What emulator.cpp lets the instructions see of the thread that runs.
#pragma once
#include <cstddef>
#include <vector>

namespace gigpo::cuda::emulator {

// What a thread's cp.async instructions have asked for.
struct Copies {
  struct Copy {
    void* to;
    const void* from;
    bool valid;
    unsigned group;
  };
  std::vector<Copy> pending;
  unsigned groups = 0;  // committed
};

Copies& own_copies();

// Ends the program unless these bytes lie in the block's shared memory and their address is a multiple of `bytes`.
void check_shared(const char* what, const void* pointer, size_t bytes);

}  // namespace gigpo::cuda::emulator
