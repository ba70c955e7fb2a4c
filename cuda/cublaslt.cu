// Opening and calling cuBLASLt (cuda/cublaslt.h). A row-major matrix is the transpose of a column-major one of the same
// stride, and Cᵀ = op(B)ᵀ · op(A)ᵀ: so the library gets B as its A and A as its B, with the same flags.
#include "cuda/cublaslt.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "cuda/cublaslt_interface.h"
#include "cuda/cublaslt_open.h"
#include "cuda/matmul_self_test.h"

namespace gigpo::cuda {

namespace {

using namespace cublaslt;

// One of the library's objects.
template <class T>
struct Object {
  template <class Create, class... Arguments>
  Object(int (*destroy)(T), Create create, Arguments... arguments) : destroy(destroy) {
    if (create(&object, arguments...) != success) object = nullptr;
  }
  ~Object() {
    if (object) destroy(object);
  }
  Object(const Object&) = delete;

  T object = nullptr;
  int (*destroy)(T);
};

// The largest power of two up to 256 that the address is a multiple of.
uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer) | 256;
  return uint32_t(address & (~address + 1));
}

// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 15>;

Key key_of(const Matmul& p, size_t workspace_bytes) {
  const int64_t flags = int64_t(p.transpose_a) | int64_t(p.transpose_b) << 1 | int64_t(p.bias.data != nullptr) << 2 |
                        int64_t(p.added.data != nullptr) << 3 | int64_t(p.added.data == p.c.data) << 4 |
                        int64_t(p.a.type) << 5 | int64_t(p.c.type) << 6;
  return {p.m(), p.n(), p.k(), p.a.stride, p.b.stride, p.c.stride, p.added ? p.added.stride : p.c.stride, flags,
          alignment_of(p.a.data), alignment_of(p.b.data), alignment_of(p.c.data),
          alignment_of(p.added ? p.added.data : p.c.data), alignment_of(p.bias.data), int64_t(workspace_bytes), p.multiprocessors};
}

struct Choice {
  bool usable = false;
  Heuristic heuristic = {};
};

// Training sees ever new numbers of tokens; past this many products the cache starts anew.
constexpr size_t most_choices = 4096;

}  // namespace

struct MatmulLibrary::State {
  ~State() {
    if (handle) functions.destroy(handle);
    // A library that has run on the device stays loaded: it may have work of its own to do when the process ends.
    if (library && !handle) dlclose(library);
  }

  void* library = nullptr;
  std::string path;
  size_t version = 0;
  Functions functions = {};
  Handle handle = nullptr;
  std::map<Key, Choice> choices;
};

namespace {

// The operation and the layouts of a product.
struct Description {
  Description(const Functions& f, const Matmul& p)
      : operation(f.operation_destroy, f.operation_create, compute_f32, real_f32),
        a(f.layout_destroy, f.layout_create, type_number(p.b.type), uint64_t(p.b.columns), uint64_t(p.b.rows), p.b.stride),
        b(f.layout_destroy, f.layout_create, type_number(p.a.type), uint64_t(p.a.columns), uint64_t(p.a.rows), p.a.stride),
        c(f.layout_destroy, f.layout_create, type_number(p.c.type), uint64_t(p.n()), uint64_t(p.m()),
          p.added ? p.added.stride : p.c.stride),
        d(f.layout_destroy, f.layout_create, type_number(p.c.type), uint64_t(p.n()), uint64_t(p.m()), p.c.stride) {
    valid = operation.object && a.object && b.object && c.object && d.object;
    const int32_t transpose_a = p.transpose_b ? transposed : as_it_is, transpose_b = p.transpose_a ? transposed : as_it_is;
    set(f, operation_transpose_a, transpose_a);
    set(f, operation_transpose_b, transpose_b);
    set(f, operation_epilogue, p.bias ? epilogue_bias : epilogue_plain);
    if (p.multiprocessors > 0) set(f, operation_multiprocessors, int32_t(p.multiprocessors));
    if (!p.bias) return;
    set(f, operation_bias_pointer, static_cast<const void*>(p.bias.data));
    set(f, operation_bias_type, int32_t(type_number(p.bias.type)));
  }

  template <class T>
  void set(const Functions& f, int attribute, T value) {
    valid = valid && f.operation_set(operation.object, attribute, &value, sizeof value) == success;
  }

  Object<Operation> operation;
  Object<Layout> a, b, c, d;
  bool valid;
};

Choice choose(const Functions& f, Handle handle, const Description& description, const Matmul& p, size_t workspace_bytes) {
  const Object<Preference> preference(f.preference_destroy, f.preference_create);
  bool valid = preference.object != nullptr;
  const auto set = [&](int attribute, auto value) {
    valid = valid && f.preference_set(preference.object, attribute, &value, sizeof value) == success;
  };
  set(preference_workspace_bytes, uint64_t(workspace_bytes));
  set(preference_reductions, reduction_in_compute_type);
  const void* const pointers[] = {p.b.data, p.a.data, p.added ? p.added.data : p.c.data, p.c.data};
  for (int i = 0; i < 4; i++) set(preference_alignment_a + i, alignment_of(pointers[i]));
  Choice choice;
  int found = 0;
  choice.usable = valid &&
                  f.find(handle, description.operation.object, description.a.object, description.b.object,
                         description.c.object, description.d.object, preference.object, 1, &choice.heuristic,
                         &found) == success &&
                  found == 1 && choice.heuristic.status == success && choice.heuristic.workspace_bytes <= workspace_bytes;
  return choice;
}

}  // namespace

bool MatmulLibrary::matmul(const Matmul& p, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (p.m() == 0 || p.n() == 0) return true;
  // A bias is loaded in sixteens, and no preference says that it cannot be.
  if (p.k() == 0 || (p.bias && alignment_of(p.bias.data) < 16)) return false;
  const Functions& f = state_->functions;
  if (!workspace) workspace_bytes = 0;
  const Description description(f, p);
  if (!description.valid) return false;
  const Key key = key_of(p, workspace_bytes);
  auto place = state_->choices.find(key);
  if (place == state_->choices.end()) {
    if (state_->choices.size() >= most_choices) state_->choices.clear();
    place = state_->choices.emplace(key, choose(f, state_->handle, description, p, workspace_bytes)).first;
  }
  Choice& choice = place->second;
  if (!choice.usable) return false;
  const float alpha = p.factor, beta = p.added ? 1 : 0;
  const void* const c = p.added ? p.added.data : p.c.data;
  const int status = f.multiply(state_->handle, description.operation.object, &alpha, p.b.data, description.a.object,
                                p.a.data, description.b.object, &beta, c, description.c.object, p.c.data,
                                description.d.object, &choice.heuristic.algorithm, workspace,
                                choice.heuristic.workspace_bytes, stream);
  choice.usable = status == success;
  return choice.usable;
}

namespace {

std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace

MatmulLibrary::MatmulLibrary(std::unique_ptr<State> state) : state_(std::move(state)) {}
MatmulLibrary::~MatmulLibrary() = default;

const std::string& MatmulLibrary::path() const { return state_->path; }
std::string MatmulLibrary::version() const { return version_text(state_->version); }

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
      return refuse("cublasLtCreate says " + std::to_string(status));
    }
    std::unique_ptr<MatmulLibrary> library(new MatmulLibrary(std::move(state)));
    try {
      const std::string reason = matmul_self_test([&](const auto&... arguments) { return library->matmul(arguments...); });
      if (!reason.empty()) return refuse("version " + library->version() + ": " + reason);
    } catch (const Error& error) {
      return refuse(std::string("the test of it failed: ") + error.what());
    }
    return library;
  };

  const char* const wanted = std::getenv("GIGPO_CUBLASLT");
  std::unique_ptr<MatmulLibrary> library;
  if (wanted && std::string(wanted) == "off") {
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
