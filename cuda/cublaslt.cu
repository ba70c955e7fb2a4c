// Opening and calling cuBLASLt (cuda/cublaslt.h).
#include "cuda/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/device_report.h"
#include "core/error.h"
#include "cuda/check.h"
#include "cuda/cublaslt_choices.h"
#include "cuda/cublaslt_open.h"
#include "cuda/cublaslt_product.h"
#include "cuda/matmul_self_test.h"
#include "cuda/switches.h"

namespace gigpo::cuda {

namespace {

using namespace cublaslt;

// A product and the algorithm for it; empty if the library has none.
struct Choice {
  Choice(const Functions& functions, Handle handle, const Matmul& product) : description(functions, handle, product) {}
  Description description;
  std::optional<Heuristic> algorithm;
};

std::mutex one_choice;
constexpr int most_candidates = 8;  // that are measured

// Training brings ever new numbers of tokens; the cache is cleared beyond this many products.
constexpr size_t most_choices = 4096;

std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

// Key of stored choices: the current device, its driver and the library.
std::string subject_of(size_t library_version) {
  const DeviceReport report = device_report();
  int index = 0;
  CUDA_CHECK(cudaGetDevice(&index));
  for (const CudaDevice& device : report.devices) {
    if (device.index != index) continue;
    return device.name + ", compute " + std::to_string(device.major) + "." + std::to_string(device.minor) + ", driver " +
           report.driver + ", cuBLASLt " + version_text(library_version);
  }
  throw Error("DEVICE_UNAVAILABLE", report.message);
}

}  // namespace

struct MatmulLibrary::State {
  ~State() {
    choices.clear();
    if (handle) functions.destroy(handle);
    // A library that has run on the device stays loaded: it may have cleanup to do at process exit.
    if (library && !handle) dlclose(library);
  }

  std::optional<Heuristic> choose(Description& description, const Matmul& p, void* workspace, size_t workspace_bytes,
                                  cudaStream_t stream) {
    const std::lock_guard lock(one_choice);  // replicas on several GPUs use what the first of them has measured
    const Key key = shared_key(p, workspace_bytes);
    const Algorithm* const known = kept ? kept->find(key) : nullptr;
    if (known) {
      if (const auto restored = description.restore(*known, workspace_bytes)) return restored;
    }
    const bool timed = kept && !known;  // a choice that is not stored must be the same in every run
    const std::vector<Heuristic> found = description.find(p, workspace_bytes, timed ? most_candidates : 1);
    if (found.empty()) return std::nullopt;
    if (!timed) return found[0];
    // Also kept where it could not be measured, because of a capture or a lack of memory: a later run must not choose another one.
    const Heuristic chosen = fastest(description, p, found, workspace, stream).value_or(found[0]);
    kept->keep(key, chosen.algorithm);
    return chosen;
  }

  void* library = nullptr;
  std::string path;
  size_t version = 0;
  Functions functions = {};
  Handle handle = nullptr;
  std::map<Key, Choice> choices;
  std::optional<KeptChoices> kept;  // set once the library has passed its test
};

bool MatmulLibrary::matmul(const Matmul& p, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (p.m() == 0 || p.n() == 0) return true;
  // The library loads a bias in 16 bytes, and no preference declares a smaller alignment.
  if (p.k() == 0 || (p.bias && alignment_of(p.bias.data) < 16)) return false;
  State& s = *state_;
  if (!workspace) workspace_bytes = 0;
  const Key key = key_of(p, workspace_bytes);
  auto place = s.choices.find(key);
  if (place == s.choices.end()) {
    if (s.choices.size() >= most_choices) s.choices.clear();
    place = s.choices.try_emplace(key, s.functions, s.handle, p).first;
    Choice& fresh = place->second;
    try {
      fresh.algorithm = s.choose(fresh.description, p, workspace, workspace_bytes, stream);
    } catch (...) {  // a failure here does not mean that the library lacks an algorithm
      s.choices.erase(place);
      throw;
    }
  }
  auto& [description, algorithm] = place->second;
  if (algorithm && !description.multiply(p, p.c.data, *algorithm, workspace, stream)) algorithm.reset();
  return algorithm.has_value();
}

MatmulLibrary::MatmulLibrary(std::unique_ptr<State> state) : state_(std::move(state)) {}
MatmulLibrary::~MatmulLibrary() = default;

const std::string& MatmulLibrary::path() const { return state_->path; }
std::string MatmulLibrary::version() const { return version_text(state_->version); }
std::string MatmulLibrary::kept_choices() const { return state_->kept->place(); }

std::unique_ptr<MatmulLibrary> MatmulLibrary::open(std::string* why_not) {
  std::string reasons;
  const auto try_path = [&](const std::string& path, int flags) -> std::unique_ptr<MatmulLibrary> {
    auto state = std::make_unique<State>();
    const auto refuse = [&](const std::string& reason) {
      reasons += (reasons.empty() ? "" : "; ") + path + ": " + reason;
      return nullptr;
    };
    state->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    if (!state->library) return flags ? nullptr : refuse(dlerror());
    state->path = path;
    if (const char* missing = state->functions.load(state->library)) return refuse(std::string("it has no ") + missing);
    state->version = state->functions.get_version();
    const size_t major = state->version / 10000;
    if (major != 12 && major != 13) return refuse("version " + version_text(state->version) + ", not 12 or 13");
    if (const int status = state->functions.create(&state->handle); status != success) {
      state->handle = nullptr;
      return refuse("cublasLtCreate returned " + std::to_string(status));
    }
    std::unique_ptr<MatmulLibrary> library(new MatmulLibrary(std::move(state)));
    try {
      const std::string reason = matmul_self_test([&](const auto&... arguments) { return library->matmul(arguments...); },
                                                  "the self-test of " + path + " (to open the device without it, set GIGPO_CUBLASLT=off)");
      if (!reason.empty()) return refuse("version " + library->version() + ": " + reason);
      library->state_->choices.clear();
      library->state_->kept.emplace(subject_of(library->state_->version));
    } catch (const Error& error) {
      if (self_test_hangs()) throw;
      return refuse(std::string("its test failed: ") + error.what());
    }
    return library;
  };

  const char* const wanted = std::getenv("GIGPO_CUBLASLT");
  std::unique_ptr<MatmulLibrary> library;
  if (is_off("GIGPO_CUBLASLT")) {
    reasons = "GIGPO_CUBLASLT is off";
  } else if (wanted && *wanted) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(wanted, ignored)) {
      library = try_path(wanted, 0);
    } else {
      for (const char* name : {"/libcublasLt.so.13", "/libcublasLt.so.12"}) {
        if (!library) library = try_path(std::string(wanted) + name, 0);
      }
    }
  } else {
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
      if (!library) library = try_path(name, RTLD_NOLOAD);
    }
    for (const std::string& path : library_candidates()) {
      if (!library) library = try_path(path, 0);
    }
  }
  if (why_not) *why_not = library ? "" : reasons;
  return library;
}

}  // namespace gigpo::cuda
