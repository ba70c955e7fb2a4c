// What this process may take of the machine that it runs on: what is free, less what Linux's control groups (containers, batch
// systems, services) keep from it.
#pragma once
#include <cstdint>
#include <string>

namespace gigpo {

// Bytes that can still be taken before memory runs out or a group's limit is met. `root`: where /proc and /sys are looked for.
int64_t available_memory(const std::string& root = "");

// Threads that can compute all the time: the processors that the process may run on, and no more than its groups' quota pays for;
// a thread beyond that would only be waited for.
int usable_cpus(const std::string& root = "");

}  // namespace gigpo
