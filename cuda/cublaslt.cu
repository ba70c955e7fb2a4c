// Finding, testing and calling cuBLASLt (cuda/cublaslt.h). A row-major matrix is the transpose of a column-major one of the same
// stride, and Cᵀ = op(B)ᵀ · op(A)ᵀ: so the library gets B as its A and A as its B, with the same flags.
#include "cuda/cublaslt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "cuda/check.h"
#include "cuda/cublaslt_interface.h"

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
using Key = std::array<int64_t, 16>;

Key key_of(const Matmul& p, size_t workspace_bytes) {
  const int64_t flags = int64_t(p.transpose_a) | int64_t(p.transpose_b) << 1 | int64_t(p.bias.data != nullptr) << 2 |
                        int64_t(p.added.data != nullptr) << 3 | int64_t(p.added.data == p.c.data) << 4 |
                        int64_t(p.a.type) << 5 | int64_t(p.c.type) << 6;
  return {p.m(), p.n(), p.k(), p.a.stride, p.b.stride, p.c.stride, p.added ? p.added.stride : p.c.stride, flags,
          alignment_of(p.a.data), alignment_of(p.b.data), alignment_of(p.c.data), alignment_of(p.added ? p.added.data : p.c.data),
          alignment_of(p.bias.data), int64_t(workspace_bytes), 0, 0};
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
                         description.c.object, description.d.object, preference.object, 1, &choice.heuristic, &found) == success &&
                  found == 1 && choice.heuristic.status == success && choice.heuristic.workspace_bytes <= workspace_bytes;
  return choice;
}

}  // namespace

bool MatmulLibrary::matmul(const Matmul& p, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (p.m() == 0 || p.n() == 0) return true;
  if (p.k() == 0) return false;
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
  const float alpha = 1, beta = p.added ? 1 : 0;
  const void* const c = p.added ? p.added.data : p.c.data;
  const int status = f.multiply(state_->handle, description.operation.object, &alpha, p.b.data, description.a.object, p.a.data,
                                description.b.object, &beta, c, description.c.object, p.c.data, description.d.object,
                                &choice.heuristic.algorithm, workspace, choice.heuristic.workspace_bytes, stream);
  choice.usable = status == success;
  return choice.usable;
}

namespace {

// Where a library may lie, in the order in which they are tried.
std::vector<std::string> candidates() {
  namespace fs = std::filesystem;
  const char* const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::vector<std::string> folders, paths;
  const auto add_python = [&](const fs::path& prefix) {  // <prefix>/lib/python3.12/site-packages/nvidia/…
    std::error_code ignored;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored)) {
      if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const char* package : {"nvidia/cu13/lib", "nvidia/cublas/lib"}) {
          found.push_back((entry.path() / packages / package).string());
        }
      }
    }
    std::sort(found.begin(), found.end());
    folders.insert(folders.end(), found.begin(), found.end());
  };
  if (const std::string cuda = variable("CUDA_PATH"); !cuda.empty()) folders.push_back(cuda + "/lib64");
  folders.push_back("/usr/local/cuda/lib64");
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string value = variable(prefix); !value.empty()) {
      add_python(value);
      folders.push_back(value + "/lib");
    }
  }
  if (const std::string home = variable("HOME"); !home.empty()) add_python(home + "/.local");
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda"}) add_python(prefix);
  std::error_code ignored;
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      if (fs::exists(fs::path(folder) / name, ignored)) paths.push_back(folder + "/" + name);
    }
  }
  for (const char* name : names) paths.push_back(name);
  return paths;
}

std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

// A product of small integers, whose sums fp32 and the rounding to bf16 give exactly in any order: whatever is misunderstood
// shows.
struct Trial {
  Type type, c_type;
  bool transpose_a, transpose_b;
  int64_t m, n, k, padding;
  bool bias, added, in_place;
};

class IntegerMatrix {
 public:
  IntegerMatrix(Type type, int64_t rows, int64_t columns, int64_t padding, int salt) {
    view_ = {nullptr, type, rows, columns, columns + padding};
    bytes_.resize(size_t(rows * view_.stride * bytes_of(type)));
    for (int64_t i = 0; i < rows * view_.stride; i++) put(i, float((i * i / 7 + i * 5 + salt) % 7 - 3));
    CUDA_CHECK(cudaMalloc(&view_.data, bytes_.size()));
    const cudaError_t status = cudaMemcpy(view_.data, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice);
    if (status != cudaSuccess) cudaFree(view_.data);
    CUDA_CHECK(status);
  }
  ~IntegerMatrix() { cudaFree(view_.data); }
  IntegerMatrix(const IntegerMatrix&) = delete;

  const Tensor& view() const { return view_; }
  float at(int64_t row, int64_t column) const {
    const size_t i = size_t(row * view_.stride + column);
    uint32_t bits = 0;
    if (view_.type == Type::f32) std::memcpy(&bits, &bytes_[4 * i], 4);
    else std::memcpy(reinterpret_cast<char*>(&bits) + 2, &bytes_[2 * i], 2);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  void set(int64_t row, int64_t column, float value) { put(row * view_.stride + column, value); }
  bool is_on_device() const {
    std::vector<char> now(bytes_.size());
    CUDA_CHECK(cudaMemcpy(now.data(), view_.data, now.size(), cudaMemcpyDeviceToHost));
    return now == bytes_;
  }

 private:
  void put(int64_t i, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (view_.type == Type::f32) {
      std::memcpy(&bytes_[4 * size_t(i)], &bits, 4);
    } else {
      bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;  // to nearest even
      std::memcpy(&bytes_[2 * size_t(i)], &bits, 2);
    }
  }

  Tensor view_;
  std::vector<char> bytes_;
};

enum class Outcome { right, wrong, refused };

Outcome try_product(MatmulLibrary& library, const Trial& t, void* workspace, size_t workspace_bytes) {
  const IntegerMatrix a(t.type, t.transpose_a ? t.k : t.m, t.transpose_a ? t.m : t.k, t.padding, 1);
  const IntegerMatrix b(t.type, t.transpose_b ? t.n : t.k, t.transpose_b ? t.k : t.n, t.padding, 2);
  const IntegerMatrix bias(t.type, 1, t.n, 0, 3), other(t.c_type, t.m, t.n, 2 * t.padding, 4);
  IntegerMatrix c(t.c_type, t.m, t.n, t.padding, 5);
  Matmul product = {a.view(), t.transpose_a, b.view(), t.transpose_b, {}, {}, c.view()};
  if (t.bias) product.bias = bias.view();
  if (t.added) product.added = t.in_place ? c.view() : other.view();
  const bool taken = library.matmul(product, workspace, workspace_bytes, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  if (!taken) return Outcome::refused;
  for (int64_t i = 0; i < t.m; i++) {
    for (int64_t j = 0; j < t.n; j++) {
      float sum = (t.bias ? bias.at(0, j) : 0) + (t.added ? (t.in_place ? c.at(i, j) : other.at(i, j)) : 0);
      for (int64_t k = 0; k < t.k; k++) sum += (t.transpose_a ? a.at(k, i) : a.at(i, k)) * (t.transpose_b ? b.at(j, k) : b.at(k, j));
      c.set(i, j, sum);
    }
  }
  return c.is_on_device() ? Outcome::right : Outcome::wrong;
}

// The reason not to use it, or "".
std::string self_test(MatmulLibrary& library) {
  const Type f32 = Type::f32, bf16 = Type::bf16;
  const Trial trials[] = {
      {bf16, bf16, false, true, 128, 128, 128, 0, false, false, false},  // this one it must take
      {bf16, f32, false, false, 128, 128, 128, 0, false, false, false},
      {bf16, bf16, false, true, 40, 72, 56, 8, true, false, false},
      {bf16, f32, true, false, 48, 72, 33, 8, false, true, true},
      {bf16, bf16, false, true, 33, 72, 40, 8, true, true, false},
      {f32, f32, false, true, 37, 41, 29, 3, true, true, true},
  };
  constexpr size_t workspace_bytes = 32 << 20;
  void* workspace = nullptr;
  CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));
  struct Free {
    void* data;
    ~Free() { cudaFree(data); }
  } freed{workspace};
  for (const Trial& trial : trials) {
    const Outcome outcome = try_product(library, trial, workspace, workspace_bytes);
    const std::string name = std::to_string(trial.m) + " x " + std::to_string(trial.n) + " x " + std::to_string(trial.k);
    if (outcome == Outcome::wrong) return "its product of " + name + " is wrong";
    if (outcome == Outcome::refused && &trial == trials) return "it has no algorithm for " + name;
  }
  return "";
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
      const std::string reason = self_test(*library);
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
    for (const std::string& path : candidates()) {
      if (!library) library = try_path(path, 0);
    }
  }
  if (why_not) *why_not = library ? "" : reasons;
  return library;
}

}  // namespace gigpo::cuda
