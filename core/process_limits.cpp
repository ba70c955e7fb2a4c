#include "core/process_limits.h"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <vector>

#include "core/control_groups.h"
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/sysctl.h>
#elif defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <bit>
#else
#include <unistd.h>
#endif

namespace gigpo {

bool hide_process() {
#if defined(__linux__)
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && geteuid() != 0;
#else
  return false;
#endif
}

static int all_processors() { return std::max(1, int(std::thread::hardware_concurrency())); }

#if defined(__linux__)

static int allowed_processors() {
  for (int most = 1024; most <= 1 << 16; most *= 2) {  // the call fails if the machine has more processors than the set
    std::vector<cpu_set_t> set(size_t(most) / (8 * sizeof(cpu_set_t)));
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.data()));
  }
  return all_processors();
}

int64_t available_memory(const std::string& root) {
  const auto kilobytes = number_behind(root + "/proc/meminfo", "MemAvailable:");
  const int64_t free = kilobytes ? *kilobytes * 1024 : int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  return std::min(free, memory_of_groups(root));
}

int usable_cpus(const std::string& root) {
  return std::max(1, int(std::min(double(allowed_processors()), processors_of_groups(root))));
}

#elif defined(__APPLE__)

static int64_t physical_memory() {
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return sysctlbyname("hw.memsize", &bytes, &size, nullptr, 0) == 0 ? bytes : 0;
}

// Inactive pages hold files and data that can be paged out; the system reclaims them before allocations fail. Free pages include those of
// files that were read ahead.
int64_t available_memory(const std::string&) {
  const mach_port_t host = mach_host_self();
  vm_statistics64_data_t pages;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  vm_size_t page = 0;
  const bool known = host_page_size(host, &page) == KERN_SUCCESS &&
                     host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) == KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  return known ? (int64_t(pages.free_count) + int64_t(pages.inactive_count)) * int64_t(page) : physical_memory();
}

int usable_cpus(const std::string&) { return all_processors(); }

#elif defined(_WIN32)

// Minimum of physical memory and commit limit: Windows allows no more allocations than the page file can back.
int64_t available_memory(const std::string&) {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  if (!GlobalMemoryStatusEx(&status)) return 0;
  return int64_t(std::min(status.ullAvailPhys, status.ullAvailPageFile));
}

// In a process with several processor groups (of 64), the masks are zero; all processors are counted then.
int usable_cpus(const std::string&) {
  DWORD_PTR process = 0, system = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system) || process == 0) return all_processors();
  return std::popcount(static_cast<unsigned long long>(process));
}

#else

int64_t available_memory(const std::string&) { return int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE)); }

int usable_cpus(const std::string&) { return all_processors(); }

#endif

}  // namespace gigpo
