// Cache files of the user: results of measurements on this machine that can be repeated if a file is lost.
#pragma once
#include <optional>
#include <string>

namespace gigpo::cuda {

// $XDG_CACHE_HOME/gigpo, else ~/.cache/gigpo, as in the XDG Base Directory Specification; "" if neither is known.
std::string user_cache();

// Text of a file, if the file exists and can be read.
std::optional<std::string> read_file(const std::string& path);

// Replaces a file by `text`, and creates its folders. Readers see the old text or the new one, but after a crash of the
// machine perhaps a part. Returns the reason of a failure, or "".
std::string replace_file(const std::string& path, const std::string& text);

}  // namespace gigpo::cuda
