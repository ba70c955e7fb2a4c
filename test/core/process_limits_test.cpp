// Memory and processor limits of a process; on Linux with limits of control groups, in folders laid out like /proc and
// /sys.
#include "core/process_limits.h"

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "test/core/check.h"

using namespace gigpo;

namespace {

constexpr int64_t mib = int64_t{1} << 20;

#ifdef __linux__

// Machine with 8 GiB of memory, of which 6 are free.
class Machine {
 public:
  Machine() : root_(std::filesystem::temp_directory_path() / ("gigpo-limits-" + std::to_string(getpid()))) {
    write("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          100000 kB\nMemAvailable:    6291456 kB\n");
  }
  ~Machine() { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path.substr(1)).parent_path());
    std::ofstream(root_ / path.substr(1)) << text;
  }
  void limit(const std::string& group, const std::string& most, int64_t used, int64_t inactive_file) {
    write(group + "/memory.max", most + "\n");
    write(group + "/memory.current", std::to_string(used));
    write(group + "/memory.stat", "anon 1\nfile 2\ninactive_file " + std::to_string(inactive_file) + "\nactive_file 3\n");
  }
  int64_t memory() const { return available_memory(root_.string()) / mib; }
  int cpus() const { return usable_cpus(root_.string()); }

 private:
  std::filesystem::path root_;
};

void test_without_groups() {
  Machine machine;
  CHECK(machine.memory() == 6144);
  CHECK(machine.cpus() >= 1 && machine.cpus() == usable_cpus());
}

void test_version_2_with_parent_limits() {
  Machine machine;
  machine.write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  machine.write("/proc/self/cgroup", "0::/batch.slice/job 7/step\n");
  const std::string slice = "/sys/fs/cgroup/batch.slice";
  machine.limit(slice + "/job 7/step", "max", 100 * mib, 0);
  CHECK(machine.memory() == 6144);
  machine.limit(slice + "/job 7", std::to_string(4096 * mib), 1000 * mib, 200 * mib);
  CHECK(machine.memory() == 4096 - 800, "%d", int(machine.memory()));
  machine.limit(slice, std::to_string(2048 * mib), 2040 * mib, 0);
  CHECK(machine.memory() == 8, "%d", int(machine.memory()));
  machine.limit(slice, std::to_string(2048 * mib), 2100 * mib, 10 * mib);  // over the limit, as can happen briefly
  CHECK(machine.memory() == 0);

  const int all = machine.cpus();
  machine.write(slice + "/job 7/cpu.max", "max 100000\n");
  CHECK(machine.cpus() == all);
  machine.write(slice + "/cpu.max", "150000 100000\n");
  CHECK(machine.cpus() == 1);
  machine.write(slice + "/cpu.max", "20000 100000\n");  // a fifth of a processor
  CHECK(machine.cpus() == 1);
}

// The container's group is the root of its mount; the path is the machine's, the container's, or outside of its view.
void test_version_2_in_a_container() {
  for (const std::string& path : {"/docker/abc", "/", "/../def"}) {
    Machine machine;
    const std::string top = path == "/docker/abc" ? "/docker/abc" : "/";
    machine.write("/proc/self/mountinfo", "30 23 0:26 " + top + " /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    machine.write("/proc/self/cgroup", "0::" + path + "\n");
    machine.limit("/sys/fs/cgroup", std::to_string(512 * mib), 12 * mib, 0);
    CHECK(machine.memory() == 500, "%s: %d", path.c_str(), int(machine.memory()));
  }
}

void test_version_1_with_an_empty_version_2() {
  Machine machine;
  machine.write("/proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                "32 31 0:29 /pod /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  machine.write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/pod/one\n2:cpu,cpuacct:/pod/one\n0::/\n");
  const auto limit = [&](const std::string& group, const std::string& most, int64_t used) {
    machine.write("/sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes", most + "\n");
    machine.write("/sys/fs/cgroup/memory" + group + "/memory.usage_in_bytes", std::to_string(used));
    machine.write("/sys/fs/cgroup/memory" + group + "/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(mib));
  };
  limit("", "9223372036854771712", 7000 * mib);  // version 1's value for no limit
  limit("/pod", std::to_string(3000 * mib), 1001 * mib);
  CHECK(machine.memory() == 2000, "%d", int(machine.memory()));
  limit("/pod/one", std::to_string(100 * mib), 51 * mib);
  CHECK(machine.memory() == 50, "%d", int(machine.memory()));

  const int all = machine.cpus();
  machine.write("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_period_us", "50000");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "-1");
  CHECK(machine.cpus() == all);
  machine.write("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "75000");
  CHECK(machine.cpus() == 1);
}

void test_processors_outside_the_affinity_mask() {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CHECK(usable_cpus("/nowhere") == CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
  CHECK(usable_cpus() == 1);
  sched_setaffinity(0, sizeof all, &all);
}

#endif

void test_this_machine() {
  CHECK(available_memory() > mib && usable_cpus() >= 1);
}

}  // namespace

int main() {
  return test::run_all(std::initializer_list<test::Test>{
#ifdef __linux__
      {"without control groups", test_without_groups},
      {"version 2, with limits of parent groups", test_version_2_with_parent_limits},
      {"version 2 in a container", test_version_2_in_a_container},
      {"version 1, with an empty version 2", test_version_1_with_an_empty_version_2},
      {"processors outside the affinity mask do not count", test_processors_outside_the_affinity_mask},
#endif
      {"limits of this machine are plausible", test_this_machine},
  });
}
