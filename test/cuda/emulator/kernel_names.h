// Name of a kernel by its address, from the symbols of its program or library.
#pragma once
#include <string>

namespace gigpo::cuda::emulator {

// For example "held_rows<float, Shape<32, 4, 16> >", without namespaces and parameters; empty if the file is stripped.
std::string kernel_name(const void* kernel);

}  // namespace gigpo::cuda::emulator
