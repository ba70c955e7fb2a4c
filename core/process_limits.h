// Limits of this process on the machine: free memory and processors, further limited by Linux control groups (containers, batch systems,
// services).
#pragma once
#include <cstdint>
#include <string>

namespace gigpo {

// Bytes that can still be allocated before memory is exhausted or a group's limit is reached. `root`: folder that contains /proc and /sys.
int64_t available_memory(const std::string& root = "");

// Number of threads that can run without waiting for a processor: the processors that the process may run on, limited by the CPU quota of
// its groups. `root` as in available_memory.
int usable_cpus(const std::string& root = "");

// Hides memory and environment of this process (/proc/<pid>/environ, mem; ptrace) from other processes of the same user, including its
// child processes. Uses PR_SET_DUMPABLE of Linux, which also disables core dumps and attaching debuggers. Returns false if the system
// does not support this, or if the processes have privileges (root) that bypass it.
bool hide_process();

}  // namespace gigpo
