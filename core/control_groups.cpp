#include "core/control_groups.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>

namespace gigpo {

std::optional<int64_t> number_behind(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string found;
    int64_t number = 0;
    if (words >> found >> number && found == name) return number;
  }
  return std::nullopt;
}

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

// First number of a file; nullopt if there is no limit ("max", -1) or no such file.
std::optional<int64_t> number_in(const std::string& path) {
  int64_t number = 0;
  std::ifstream file(path);
  return file >> number && number >= 0 ? std::optional(number) : std::nullopt;
}

bool contains(const std::string& list, const std::string& item) { return ("," + list + ",").find("," + item + ",") != std::string::npos; }

// Whether `path` is `parent` or below it.
bool is_within(const std::string& path, const std::string& parent) {
  return parent == "/" || path == parent || path.starts_with(parent + "/");
}

struct Group {
  std::string directory;
  bool unified;  // version 2 of control groups
};

// Visits the control group of the process for a controller and its ancestors, each of which limits the process (man 7 cgroups). The format
// of mountinfo is in man 5 proc: … root mountpoint options … - type source options. Both versions may be mounted at once.
void each_group(const std::string& root, const std::string& controller, const std::function<void(const Group&)>& visit) {
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string mount; std::getline(mounts, mount);) {
    std::istringstream words(mount);
    std::string word, top, point, type, options;
    words >> word >> word >> word >> top >> point;
    while (words >> word && word != "-") {}
    words >> type >> word >> options;
    const bool unified = type == "cgroup2";
    if (!unified && !(type == "cgroup" && contains(options, controller))) continue;

    std::ifstream memberships(root + "/proc/self/cgroup");
    for (std::string line; std::getline(memberships, line);) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      std::string path = line.substr(second + 1);
      if (unified ? !controllers.empty() : !contains(controllers, controller)) continue;
      // In a container, the mount may start at the container's group while the path starts at the machine's root group, or vice versa.
      if (top != "/" && is_within(path, top)) path = path.substr(top.size());
      else if (top != "/" || path.starts_with("/..")) path.clear();
      for (;;) {
        while (path.ends_with("/")) path.pop_back();
        visit({root + point + path, unified});
        if (path.empty()) break;
        path.resize(path.rfind('/'));
      }
    }
  }
}

// Bytes of memory that a group may still use. Memory of cached files counts as free, because the system can reclaim it.
int64_t room_in(const Group& group) {
  const auto file = [&](const char* name) { return group.directory + "/" + name; };
  const auto limit = number_in(file(group.unified ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = number_in(file(group.unified ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return unlimited;
  const int64_t files = number_behind(file("memory.stat"), group.unified ? "inactive_file" : "total_inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - files));
}

// CPU time quota in processors.
double quota_of(const Group& group) {
  if (group.unified) {
    double quota = 0, period = 0;
    std::ifstream file(group.directory + "/cpu.max");
    return file >> quota >> period && period > 0 ? quota / period : INFINITY;
  }
  const auto quota = number_in(group.directory + "/cpu.cfs_quota_us"), period = number_in(group.directory + "/cpu.cfs_period_us");
  return quota && period && *period > 0 ? double(*quota) / double(*period) : INFINITY;
}

}  // namespace

int64_t memory_of_groups(const std::string& root) {
  int64_t room = unlimited;
  each_group(root, "memory", [&](const Group& group) { room = std::min(room, room_in(group)); });
  return room;
}

double processors_of_groups(const std::string& root) {
  double processors = INFINITY;
  each_group(root, "cpu", [&](const Group& group) { processors = std::min(processors, quota_of(group)); });
  return processors;
}

}  // namespace gigpo
