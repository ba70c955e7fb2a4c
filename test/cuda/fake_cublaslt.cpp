// Fake cuBLASLt for machines without a GPU: its functions over host memory, column-major, with independently written
// constants of the interface. It refuses unknown inputs and counts its objects. As the real library may, it sums in an
// order that depends on the number of columns (rows of the engine's batch). Built as a shared library:
//   g++ -std=c++20 -O1 -shared -fPIC test/cuda/fake_cublaslt.cpp -o libfake_cublaslt.so
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

enum Status { success = 0, not_initialized = 1, invalid_value = 7, execution_failed = 13, not_supported = 15 };

// Settings of a test: "version", "create", "multiply" (statuses to return), "refuse", "refuse_known", "off_by_one",
// "no_bias", "no_beta", the number of algorithms ("candidates"), and the one that takes no time ("fastest"). Readable:
// living "objects", "creates", "searches", "checks", "products", and the last one's "algorithm". "enqueue" and "spend"
// are functions of test/cuda/fake_library.h.
std::map<std::string, long>& settings() {
  static std::map<std::string, long> values = {{"version", 130001}, {"candidates", 1}};
  return values;
}

struct Handle {};
struct Operation {
  int32_t transposed[2] = {0, 0};
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  int32_t bias_type = -1, multiprocessors = 0;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t stride;
};
struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reductions = 7, alignments[4] = {256, 256, 256, 256};
};
struct Algorithm {
  uint64_t words[8];
};
struct Found {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

constexpr uint64_t mark = 0x6769'6770'6F00'0001;  // in the last word, so that a wrong structure size is detected
constexpr size_t workspace_needed = 4096;
constexpr int word_of_workspace = 4, word_of_number = 5;  // words of an algorithm

template <class T>
int create(T** to) {
  *to = new T();
  settings()["objects"]++;
  settings()["creates"]++;
  return success;
}
template <class T>
int destroy(T* object) {
  delete object;
  settings()["objects"]--;
  return success;
}

template <class T>
int assign(T* to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return invalid_value;
  std::memcpy(to, value, bytes);
  return success;
}

bool known_type(int type) { return type == 0 || type == 14; }

float read(const void* data, int type, int64_t i) {
  float value;
  if (type == 0) {
    std::memcpy(&value, static_cast<const char*>(data) + 4 * i, 4);
  } else {
    uint16_t half;
    std::memcpy(&half, static_cast<const char*>(data) + 2 * i, 2);
    const uint32_t bits = uint32_t(half) << 16;
    std::memcpy(&value, &bits, 4);
  }
  return value;
}
void write(void* data, int type, int64_t i, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (type == 0) {
    std::memcpy(static_cast<char*>(data) + 4 * i, &bits, 4);
  } else {
    const auto half = uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    std::memcpy(static_cast<char*>(data) + 2 * i, &half, 2);
  }
}

// Whether shapes and types match; bf16 only with rows of a multiple of 16 bytes.
int examine(const Operation& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  for (const Layout* l : {&a, &b, &c, &d}) {
    if (!known_type(l->type) || l->stride < int64_t(l->rows)) return invalid_value;
    if (l->type == 14 && l->stride % 8 != 0) return not_supported;
  }
  const uint64_t m = o.transposed[0] ? a.columns : a.rows, k = o.transposed[0] ? a.rows : a.columns;
  const uint64_t n = o.transposed[1] ? b.rows : b.columns;
  if ((o.transposed[1] ? b.columns : b.rows) != k || c.rows != m || c.columns != n || d.rows != m || d.columns != n)
    return invalid_value;
  if (a.type != b.type || c.type != d.type || (a.type == 0 && d.type != 0)) return not_supported;
  if (o.epilogue == 4 && (!o.bias || !known_type(o.bias_type))) return invalid_value;
  if (o.epilogue == 4 && o.bias_type != d.type) return not_supported;  // the bias has the type of the result
  return success;
}

bool aligned(const void* pointer, uint32_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

struct Product {
  Operation operation;
  Layout layout_a, layout_b, layout_c, layout_d;
  float alpha, beta;
  const void *a, *b, *c;
  void *d, *workspace;
  size_t workspace_bytes;
  long number;  // of the algorithm
};

void multiply(const Product& p) {
  if (p.workspace_bytes) std::memset(p.workspace, 0xA5, p.workspace_bytes);
  const Operation& o = p.operation;
  const Layout &la = p.layout_a, &lb = p.layout_b, &lc = p.layout_c, &ld = p.layout_d;
  const auto m = int64_t(ld.rows), n = int64_t(ld.columns);
  const auto k = int64_t(o.transposed[0] ? la.rows : la.columns) - settings()["off_by_one"];
  const int64_t parts = 1 + (n + p.number) % 5;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < m; i++) {
      float sum = 0;
      for (int64_t part = 0; part < parts; part++) {
        float sum_of_part = 0;
        for (int64_t l = part; l < k; l += parts) {
          sum_of_part += read(p.a, la.type, o.transposed[0] ? i * la.stride + l : l * la.stride + i) *
                         read(p.b, lb.type, o.transposed[1] ? l * lb.stride + j : j * lb.stride + l);
        }
        sum += sum_of_part;
      }
      sum *= p.alpha;
      if (p.beta != 0 && !settings()["no_beta"]) sum += p.beta * read(p.c, lc.type, j * lc.stride + i);
      if (o.epilogue == 4 && !settings()["no_bias"]) sum += read(o.bias, o.bias_type, i);
      write(p.d, ld.type, j * ld.stride + i, sum);
    }
  }
}

}  // namespace

extern "C" {

void fake_cublaslt_set(const char* name, long value) { settings()[name] = value; }
long fake_cublaslt_get(const char* name) { return settings()[name]; }

size_t cublasLtGetVersion() { return size_t(settings()["version"]); }

int cublasLtCreate(Handle** to) {
  if (const long status = settings()["create"]) return int(status);
  return create(to);
}
int cublasLtDestroy(Handle* handle) { return destroy(handle); }

int cublasLtMatmulDescCreate(Operation** to, int compute, int scale) {
  if (compute != 68 || scale != 0) return not_supported;
  return create(to);
}
int cublasLtMatmulDescDestroy(Operation* operation) { return destroy(operation); }
int cublasLtMatmulDescSetAttribute(Operation* o, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 3:
    case 4: return assign(&o->transposed[attribute - 3], value, bytes);
    case 7:
      if (assign(&o->epilogue, value, bytes) != success) return invalid_value;
      return o->epilogue == 1 || o->epilogue == 4 ? success : not_supported;
    case 8: return assign(&o->bias, value, bytes);
    case 15: return assign(&o->multiprocessors, value, bytes) == success && o->multiprocessors > 0 ? success : invalid_value;
    case 26: return assign(&o->bias_type, value, bytes);
    default: return invalid_value;
  }
}

int cublasLtMatrixLayoutCreate(Layout** to, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  if (!known_type(type) || stride < int64_t(rows)) return invalid_value;
  create(to);
  **to = {type, rows, columns, stride};
  return success;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { return destroy(layout); }

int cublasLtMatmulPreferenceCreate(Preference** to) { return create(to); }
int cublasLtMatmulPreferenceDestroy(Preference* preference) { return destroy(preference); }
int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value, size_t bytes) {
  if (attribute == 1) return assign(&p->workspace_bytes, value, bytes);
  if (attribute == 3) return assign(&p->reductions, value, bytes);
  if (attribute >= 5 && attribute <= 8) return assign(&p->alignments[attribute - 5], value, bytes);
  return invalid_value;
}

int cublasLtMatmulAlgoGetHeuristic(Handle* handle, const Operation* o, const Layout* a, const Layout* b, const Layout* c,
                                   const Layout* d, const Preference* p, int wanted, Found* found, int* count) {
  settings()["searches"]++;
  *count = 0;
  if (!handle || wanted < 1) return invalid_value;
  if (settings()["refuse"]) return not_supported;
  if (const int status = examine(*o, *a, *b, *c, *d)) return status;
  const Layout* const layouts[] = {a, b, c, d};
  Algorithm algorithm = {};
  for (int i = 0; i < 4; i++) {
    if (p->alignments[i] < (layouts[i]->type == 14 ? 16 : 4)) return not_supported;
    algorithm.words[i] = p->alignments[i];  // valid only for pointers with these alignments
  }
  algorithm.words[word_of_workspace] = p->workspace_bytes >= workspace_needed ? workspace_needed : 0;
  algorithm.words[7] = mark;
  for (*count = 0; *count < wanted && *count < settings()["candidates"]; ++*count) {
    algorithm.words[word_of_number] = uint64_t(*count);
    found[*count] = {algorithm, size_t(algorithm.words[word_of_workspace]), success, 1.0f, {}};
  }
  return success;
}

int cublasLtMatmulAlgoCheck(Handle* handle, const Operation* o, const Layout* a, const Layout* b, const Layout* c,
                            const Layout* d, const Algorithm* algorithm, Found* result) {
  settings()["checks"]++;
  if (!handle || algorithm->words[7] != mark) return invalid_value;
  if (settings()["refuse_known"]) return not_supported;
  result->workspace_bytes = size_t(algorithm->words[word_of_workspace]);
  result->waves = 1;
  return examine(*o, *a, *b, *c, *d);
}

int cublasLtMatmul(Handle* handle, const Operation* o, const float* alpha, const void* a, const Layout* la, const void* b,
                   const Layout* lb, const float* beta, const void* c, const Layout* lc, void* d, const Layout* ld,
                   const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  settings()["products"]++;
  if (const long status = settings()["multiply"]) return int(status);
  if (!handle || algorithm->words[7] != mark || (workspace_bytes && !workspace)) return invalid_value;
  if (const int status = examine(*o, *la, *lb, *lc, *ld)) return status;
  const void* const pointers[] = {a, b, c, d};
  for (int i = 0; i < 4; i++) {
    if (!aligned(pointers[i], uint32_t(algorithm->words[i]))) return invalid_value;
  }
  settings()["algorithm"] = long(algorithm->words[word_of_number]);
  const auto enqueue = reinterpret_cast<void (*)(void*, std::function<void()>)>(settings()["enqueue"]);
  const Product product = {*o, *la, *lb, *lc, *ld, *alpha, *beta, a, b, c, d, workspace, workspace_bytes,
                           settings()["algorithm"]};
  const auto work = [product] {
    multiply(product);
    const auto spend = reinterpret_cast<void (*)()>(settings()["spend"]);
    if (spend && product.number != settings()["fastest"]) spend();
  };
  if (enqueue) enqueue(stream, work);
  else work();
  return success;
}

}  // extern "C"
