// Calls a fuzz target with changed inputs of its corpus, where there is no libFuzzer:
//   <target>_fuzz [--seconds 5] [--seed 1] [--input N] [--keep .]   changed inputs for some seconds, or one of them alone
//   <target>_fuzz --corpus <folder>                                 writes the corpus, as files for libFuzzer
//   <target>_fuzz <file> ...                                        files alone
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>

#include "core/random.h"
#include "test/core/fuzz/input.h"
#include "test/core/fuzz/memory.h"

namespace gigpo::test {

// Limits of an input, as in test/fuzz/fuzz.ts. Instrumented code is slower by about `slower`.
constexpr int64_t most_bytes = int64_t{192} << 20, bytes_per_byte = 64;
constexpr double most_seconds = 1, slower = 10;
constexpr size_t longest = 1 << 14;

static Bytes current;
static char kept_in[4096];
static uint64_t current_index = 0;

// Keeps the current input. Runs while the process ends, so it allocates nothing.
static void keep() {
  const int file = open(kept_in, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && write(file, current.data(), current.size()) == ssize_t(current.size())) close(file);
  std::fprintf(stderr, "Input %llu is kept in %s\n", static_cast<unsigned long long>(current_index), kept_in);
}

[[noreturn]] static void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  keep();
  _exit(1);
}

static double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

struct Most {
  double amount = 0;
  uint64_t index = 0;
  void note(double found, uint64_t at) {
    if (found > amount) amount = found, index = at;
  }
};
static Most slowest, largest;

static void run(Bytes input, uint64_t index) {
  current = std::move(input), current_index = index;
  const itimerval watch{{0, 0}, {time_t(10 * most_seconds * slower), 0}};
  setitimer(ITIMER_PROF, &watch, nullptr);
  const double began = cpu_seconds();
  start_counting();
  LLVMFuzzerTestOneInput(current.data(), current.size());
  const int64_t bytes = counted();
  const double seconds = cpu_seconds() - began;
  slowest.note(seconds, index), largest.note(double(bytes), index);
  if (bytes > most_bytes + bytes_per_byte * int64_t(current.size())) fail("The input takes more memory than its share.");
  if (seconds > most_seconds * slower) fail("The input takes too long.");
}

// Random numbers of one input: the same for the same seed and index.
class Draws {
 public:
  Draws(uint32_t seed, uint64_t index) : key_{seed, uint32_t(index >> 32)}, index_(uint32_t(index)) {}
  uint32_t word() { return philox(key_, next_++, index_, 0, 0).word[0]; }
  size_t below(size_t end) { return end == 0 ? 0 : word() % end; }

 private:
  Key key_;
  uint32_t index_, next_ = 0;
};

static void change(Bytes& bytes, Draws& draws, const std::vector<Bytes>& all) {
  const size_t at = draws.below(bytes.size() + 1);
  const auto place = bytes.begin() + int64_t(at);
  switch (draws.below(7)) {
    case 0:
      if (!bytes.empty()) bytes[draws.below(bytes.size())] ^= uint8_t(1u << draws.below(8));
      break;
    case 1:
      if (!bytes.empty()) bytes[draws.below(bytes.size())] = uint8_t(draws.word());
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(place, place + int64_t(draws.below(std::min<size_t>(32, bytes.size() - at) + 1)));
      break;
    case 4: {
      Bytes random(1 + draws.below(32));
      for (uint8_t& byte : random) byte = uint8_t(draws.word());
      bytes.insert(place, random.begin(), random.end());
      break;
    }
    case 5: {  // a part of another input, over this one or within it
      const Bytes& other = all[draws.below(all.size())];
      const size_t from = draws.below(other.size()), count = draws.below(std::min<size_t>(256, other.size() - from) + 1);
      const Bytes part(other.begin() + int64_t(from), other.begin() + int64_t(from + count));
      if (draws.below(2) == 0) bytes.erase(place, place + int64_t(std::min(count, bytes.size() - at)));
      bytes.insert(bytes.begin() + int64_t(at), part.begin(), part.end());
      break;
    }
    default: {  // a number at a bound
      constexpr uint64_t bounds[] = {0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, ~uint64_t{0}};
      const uint64_t bound = bounds[draws.below(std::size(bounds))];
      const size_t width = size_t{1} << draws.below(4);
      if (bytes.size() >= width) std::memcpy(&bytes[draws.below(bytes.size() - width + 1)], &bound, width);
    }
  }
  if (bytes.size() > longest) bytes.resize(longest);
}

static Bytes changed(const std::vector<Bytes>& all, uint32_t seed, uint64_t index) {
  Draws draws(seed, index);
  Bytes bytes = all[draws.below(all.size())];
  for (size_t n = 1 + draws.below(6); n > 0; n--) change(bytes, draws, all);
  return bytes;
}

static void write_corpus(const std::string& folder) {
  size_t n = 0;
  for (const Bytes& bytes : corpus()) {
    std::ofstream to(folder + "/" + std::to_string(n++), std::ios::binary);
    to.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    if (!to) std::fprintf(stderr, "%s is not written.\n", folder.c_str()), std::exit(2);
  }
}

// Keeps the current input when the process ends by a sanitizer, an exception or a signal.
static void watch_ends() {
  on_death(keep);
  std::set_terminate([] { fail("An exception left the target."); });
  std::signal(SIGABRT, [](int) { fail("The target called abort."); });
  std::signal(SIGPROF, [](int) { fail("The input hangs."); });
}

static int fuzz(std::map<std::string, std::string> options, const char* name) {
  const auto seed = uint32_t(std::stoul(options["--seed"]));
  const std::vector<Bytes> all = corpus();
  std::snprintf(kept_in, sizeof kept_in, "%s/%s-%u", options["--keep"].c_str(), name, seed);
  watch_ends();
  uint64_t index = 0;
  if (const std::string& one = options["--input"]; !one.empty()) {
    index = std::stoull(one);
    run(changed(all, seed, index), index);
    return 0;
  }
  for (const Bytes& bytes : all) run(bytes, 0);  // what is built once is no part of what an input costs
  slowest = largest = {};
  const double seconds = std::stod(options["--seconds"]);
  const time_t began = time(nullptr);
  for (; difftime(time(nullptr), began) < seconds; index++) run(changed(all, seed, index), index);
  std::printf("%s: %llu inputs, slowest %.3f s (input %llu), largest growth %.1f MiB (input %llu), 0 findings\n", name,
              static_cast<unsigned long long>(index), slowest.amount, static_cast<unsigned long long>(slowest.index),
              largest.amount / (1 << 20), static_cast<unsigned long long>(largest.index));
  return 0;
}

}  // namespace gigpo::test

int main(int count, char** words) {
  using namespace gigpo::test;
  std::map<std::string, std::string> options{{"--seconds", "5"}, {"--seed", "1"}, {"--input", ""}, {"--keep", "."}, {"--corpus", ""}};
  std::vector<std::string> files;
  for (int i = 1; i < count; i++) {
    const std::string word = words[i];
    if (!word.starts_with("--")) files.push_back(word);
    else if (options.contains(word) && i + 1 < count) options[word] = words[++i];
    else return std::fprintf(stderr, "%s is no option, or has no value.\n", words[i]), 2;
  }
  if (!options["--corpus"].empty()) return write_corpus(options["--corpus"]), 0;
  const std::string path = words[0];
  if (files.empty()) return fuzz(options, path.substr(path.rfind('/') + 1).c_str());
  for (const std::string& file : files) {
    std::ifstream from(file, std::ios::binary);
    if (!from) return std::fprintf(stderr, "%s cannot be read.\n", file.c_str()), 2;
    run(Bytes(std::istreambuf_iterator<char>(from), {}), 0);
  }
  return 0;
}
