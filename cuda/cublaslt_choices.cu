#include "cuda/cublaslt_choices.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <sstream>

#include "cuda/check.h"
#include "cuda/memory.h"
#include "cuda/user_cache.h"

namespace gigpo::cuda::cublaslt {

namespace {

constexpr int rounds = 3;  // the best of them counts
// Times that differ by less are considered equal: a relative tolerance, and a microsecond between an event and a
// kernel.
constexpr float noise = 1.02f, noise_milliseconds = 0.001f;

struct Event {
  Event() { CUDA_CHECK(cudaEventCreate(&event)); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;

  cudaEvent_t event = nullptr;
};

// Memory for the separate output of a measured product, two thirds of what the plan leaves free (reserved_bytes). Only the gradient of a large
// table (933 MB for 1.5B) takes more; its algorithm is the first of the library.
constexpr size_t most_beside = size_t{512} << 20;

constexpr const char* format = "gigpo cublaslt 1";

// FNV-1a
std::string hash_of(const std::string& text) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100'0000'01b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

// Text of a file: format, subject, a line of numbers per choice (those of the product, then of the algorithm), and the
// hash of these lines.
std::string text_of(const std::string& subject, const std::map<Key, Algorithm>& choices) {
  std::ostringstream text;
  text << format << '\n' << subject << '\n';
  for (const auto& [key, algorithm] : choices) {
    for (const int64_t number : key) text << number << ' ';
    for (const uint64_t word : algorithm.data) text << ' ' << word;
    text << '\n';
  }
  return text.str() + hash_of(text.str()) + '\n';
}

std::optional<std::map<Key, Algorithm>> choices_of(const std::string& text, const std::string& subject) {
  const std::string heading = std::string(format) + '\n' + subject + '\n';
  constexpr size_t hash_bytes = 17;
  if (text.size() < heading.size() + hash_bytes || text.compare(0, heading.size(), heading) != 0) return std::nullopt;
  const std::string hashed = text.substr(0, text.size() - hash_bytes);
  if (text.compare(hashed.size(), hash_bytes, hash_of(hashed) + '\n') != 0) return std::nullopt;
  std::map<Key, Algorithm> choices;
  std::istringstream lines(hashed.substr(heading.size()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    Key key;
    Algorithm algorithm;
    for (int64_t& number : key) numbers >> number;
    for (uint64_t& word : algorithm.data) numbers >> word;
    if (!numbers) return std::nullopt;
    choices.emplace(key, algorithm);
  }
  return choices;
}

}  // namespace

std::optional<Heuristic> fastest(Description& description, const Matmul& product, const std::vector<Heuristic>& found, void* workspace,
                                 cudaStream_t stream) {
  cudaStreamCaptureStatus capture;
  CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) return std::nullopt;
  if (found.size() == 1) return found[0];
  Scratch beside;  // separate output: an in-place sum must not be added to twice
  const bool in_place = product.added.data == product.c.data;
  const size_t beside_bytes = in_place ? size_t(product.m() * product.c.stride * bytes_of(product.c.type)) : 0;
  if (beside_bytes > most_beside) return std::nullopt;
  try {
    beside.grow(beside_bytes);
  } catch (const Error& error) {
    if (std::strcmp(error.code, "OUT_OF_MEMORY") != 0) throw;
    return std::nullopt;
  }
  void* const to = in_place ? beside.data() : product.c.data;

  const size_t count = found.size(), products = (rounds + 1) * count;
  std::vector<bool> taken(count, true);
  std::vector<Event> events(products + 1);  // recorded without waiting, so the device does not wait for the host in between
  CUDA_CHECK(cudaEventRecord(events[0].event, stream));
  for (size_t i = 0; i < products; i++) {
    taken[i % count] = taken[i % count] && description.multiply(product, to, found[i % count], workspace, stream);
    CUDA_CHECK(cudaEventRecord(events[i + 1].event, stream));
  }
  CUDA_CHECK(cudaEventSynchronize(events[products].event));
  std::vector<float> best(count, std::numeric_limits<float>::infinity());
  for (size_t i = count; i < products; i++) {  // the first round only loads the code
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events[i].event, events[i + 1].event));
    if (taken[i % count]) best[i % count] = std::min(best[i % count], milliseconds);
  }
  const float least = *std::min_element(best.begin(), best.end());
  if (std::isinf(least)) return std::nullopt;
  const float bound = least * noise + noise_milliseconds;
  return found[size_t(std::find_if(best.begin(), best.end(), [&](float time) { return time <= bound; }) - best.begin())];
}

KeptChoices::KeptChoices(std::string subject) : subject_(std::move(subject)) {
  const std::string folder = user_cache();
  if (folder.empty()) {
    why_not_ = "neither XDG_CACHE_HOME nor HOME is set to an absolute path";
    return;
  }
  path_ = folder + "/cublaslt-" + hash_of(subject_) + ".txt";
  if (!read()) write();  // shows from the start whether choices can be stored
}

const Algorithm* KeptChoices::find(const Key& key) {
  auto found = choices_.find(key);
  if (found == choices_.end()) {
    read();  // another process, or another device of this process, may have stored this product meanwhile
    found = choices_.find(key);
  }
  return found == choices_.end() ? nullptr : &found->second;
}

void KeptChoices::keep(const Key& key, const Algorithm& algorithm) {
  read();
  choices_.emplace(key, algorithm);
  write();
}

std::string KeptChoices::place() const { return why_not_.empty() ? "kept in " + path_ : "not kept: " + why_not_; }

bool KeptChoices::read() {
  const auto text = path_.empty() ? std::nullopt : read_file(path_);
  auto choices = text ? choices_of(*text, subject_) : std::nullopt;
  if (choices) choices_.merge(*choices);
  return choices.has_value();
}

void KeptChoices::write() {
  if (!path_.empty()) why_not_ = replace_file(path_, text_of(subject_, choices_));
}

}  // namespace gigpo::cuda::cublaslt
