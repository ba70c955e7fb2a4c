// What this process may take of the machine that it runs on: what is free, less what Linux's control groups (containers, batch
// systems, services) keep from it.
#pragma once
#include <cstdint>
#include <string>

namespace gigpo {

// Bytes that can still be taken before memory runs out or a group's limit is met. `root`: where Linux's /proc and /sys are looked for.
int64_t available_memory(const std::string& root = "");

// Threads that can compute all the time: the processors that the process may run on, and no more than its groups' quota pays for;
// a thread beyond that would only be waited for. `root` as above.
int usable_cpus(const std::string& root = "");

// Keeps the memory and the environment of this process (/proc/<pid>/environ, mem; ptrace) from other processes of its user, those that it
// starts included: Linux's PR_SET_DUMPABLE, which also ends core dumps and debuggers that attach later. False where the system has no such
// thing, or another user's rights (root's) would still reach it.
bool hide_process();

}  // namespace gigpo
