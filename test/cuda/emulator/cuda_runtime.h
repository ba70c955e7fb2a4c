// nvcc includes this before every .cu; with the emulator, `-include cuda_runtime.h` does.
#pragma once
#include "cuda_runtime_api.h"
