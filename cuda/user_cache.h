// Files that may be lost: what this program found out on this machine, and would rather not find out again.
#pragma once
#include <optional>
#include <string>

namespace gigpo::cuda {

// $XDG_CACHE_HOME/gigpo, else ~/.cache/gigpo, as the XDG Base Directory Specification has it; "" where neither is known.
std::string user_cache();

// The file's text, where there is one that can be read.
std::optional<std::string> read_file(const std::string& path);

// Puts `text` in place of the file, with the folders that this takes: whoever reads finds the old text or the new one, but after
// a crash of the machine perhaps a part. What went wrong, or "".
std::string replace_file(const std::string& path, const std::string& text);

}  // namespace gigpo::cuda
