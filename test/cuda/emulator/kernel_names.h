// The name of a kernel by its address, from the symbols of the program or library that holds it.
#pragma once
#include <string>

namespace gigpo::cuda::emulator {

// "held_rows<float, Shape<32, 4, 16> >", without namespaces and parameters; empty where the file has been stripped.
std::string kernel_name(const void* kernel);

}  // namespace gigpo::cuda::emulator
