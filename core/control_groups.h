// Limits that Linux's control groups (containers, batch systems, services) set to this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace gigpo {

// Bytes that the groups still allow; the largest number without a limit. `root`: where /proc and /sys are looked for.
int64_t memory_of_groups(const std::string& root);

// Processors' worth of time that the groups allow; infinity without a limit.
double processors_of_groups(const std::string& root);

// The number behind `name` in a file of names and numbers.
std::optional<int64_t> number_behind(const std::string& path, const std::string& name);

}  // namespace gigpo
