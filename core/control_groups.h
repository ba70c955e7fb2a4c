// Limits that Linux control groups (containers, batch systems, services) set for this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace gigpo {

// Bytes of memory that the groups still allow; the largest int64_t without a limit. `root`: folder that contains /proc and /sys.
int64_t memory_of_groups(const std::string& root);

// CPU time quota of the groups, in processors; infinity without a limit.
double processors_of_groups(const std::string& root);

// Number that follows `name` in a file of name-number pairs.
std::optional<int64_t> number_behind(const std::string& path, const std::string& name);

}  // namespace gigpo
