#include "cuda/user_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace gigpo::cuda {

std::string user_cache() {
  const auto absolute = [](const char* name) {  // the specification ignores relative paths
    const char* const value = std::getenv(name);
    return std::string(value && *value == '/' ? value : "");
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/gigpo";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/gigpo";
  return "";
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return file.bad() ? std::nullopt : std::optional(std::move(text));
}

std::string replace_file(const std::string& path, const std::string& text) {
  const auto failed = [&](const std::string& reason) { return path + " cannot be written: " + reason; };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return failed(error.message());
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return failed(std::strerror(errno));
  std::FILE* const file = fdopen(descriptor, "wb");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0) return "";
  const std::string reason = std::strerror(errno);
  unlink(temporary.c_str());
  return failed(reason);
}

}  // namespace gigpo::cuda
