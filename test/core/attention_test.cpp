// Attention on the CPU over trees of tokens, against double precision. Results do not depend on the number of threads,
// and in bf16 they are bit-identical to fp32 on the converted inputs.
#include "core/cpu/attention_parts.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/bf16.h"
#include "core/cpu/attention.h"
#include "core/packed_tokens.h"
#include "test/core/each_isa.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers allocate memory of their own
#define GIGPO_COUNTS_MEMORY 1
#include <malloc.h>
#endif

using namespace gigpo;
using namespace gigpo::cpu;

namespace {

// Matrix of numbers that bf16 can represent.
struct Matrix {
  Matrix(Type type, int64_t rows, int64_t columns, uint32_t stream = 0) : type(type), rows(rows), columns(columns), halves(rows * columns) {
    for (size_t i = 0; i < halves.size() && stream > 0; i++)
      halves[i] = to_bf16(2 * open_uniform(philox({7, 0}, uint32_t(i), 0, stream, 0).word[0]) - 1);
    for (const uint16_t half : halves) floats.push_back(from_bf16(half));
  }
  Tensor tensor() { return {type == Type::f32 ? static_cast<void*>(floats.data()) : halves.data(), type, rows, columns, columns}; }
  float at(int64_t i, int64_t j) const { return type == Type::f32 ? floats[i * columns + j] : from_bf16(halves[i * columns + j]); }
  void take(const Matrix& from) {
    for (size_t i = 0; i < halves.size(); i++) halves[i] = to_bf16(from.floats[i]), floats[i] = from_bf16(halves[i]);
  }
  // If this is bf16 and the other is not, the other is rounded first.
  bool operator==(const Matrix& other) const {
    if (type == Type::f32) return std::memcmp(floats.data(), other.floats.data(), floats.size() * sizeof(float)) == 0;
    for (size_t i = 0; i < halves.size(); i++) {
      if (halves[i] != (other.type == Type::f32 ? to_bf16(other.floats[i]) : other.halves[i])) return false;
    }
    return true;
  }

  Type type;
  int64_t rows, columns;
  std::vector<uint16_t> halves;
  std::vector<float> floats;
};

struct Branch {
  int64_t depth, count;  // number of tokens that continue the first `depth` tokens of the previous branch
};
struct Shape {
  const char* name;
  int64_t heads, kv_heads, head_size;
  std::vector<Branch> branches;
  int64_t window = 0;
};
const Shape shapes[] = {
    {"a row", 4, 2, 32, {{0, 700}}},
    {"short rows", 2, 2, 16, {{0, 1}, {0, 64}, {0, 65}, {0, 2}}},
    {"a tree with a long prefix", 3, 1, 40, {{0, 300}, {290, 70}, {64, 600}, {640, 5}}},
    {"a long row among short ones", 2, 1, 64, {{0, 30}, {0, 1100}, {0, 30}, {3, 9}}},
    {"a row with a window", 4, 2, 32, {{0, 700}}, 100},
    {"a window of one token", 2, 2, 16, {{0, 70}, {0, 3}, {2, 90}}, 1},
    {"a window as long as a group of keys", 2, 1, 24, {{0, 200}, {0, 129}}, 64},
    {"a tree with a window", 3, 1, 40, {{0, 300}, {290, 70}, {64, 600}, {640, 5}}, 33},
    {"a tree whose branches see part of its prefix through a window", 3, 1, 40, {{0, 90}, {80, 170}, {80, 300}, {85, 40}}, 150},
    {"a window that hides nothing", 2, 1, 64, {{0, 30}, {0, 500}, {3, 9}}, 500},
};

// Visibility of tokens, as in PackedRows.
struct Seen {
  explicit Seen(const Shape& shape) {
    std::vector<int32_t> path;
    const auto leave = [&](size_t depth) {
      for (; path.size() > depth; path.pop_back()) ends[path.back()] = int32_t(starts.size());
    };
    for (const Branch& branch : shape.branches) {
      leave(size_t(branch.depth));
      for (int64_t i = 0; i < branch.count; i++) {
        path.push_back(int32_t(starts.size()));
        const auto hidden = shape.window > 0 ? std::max<int64_t>(int64_t(path.size()) - shape.window, 0) : 0;
        starts.push_back(path[size_t(hidden)]), ends.push_back(0), depths.push_back(int32_t(path.size()) - 1);
      }
    }
    leave(0);
    if (shape.window == 0) return;
    behind.resize(starts.size());
    for (int32_t query = 0; query < tokens(); query++) {
      for (int32_t key = starts[query]; key <= query; key++) {
        if (ends[key] > query) behind[key] = query + 1;
      }
    }
  }
  int64_t tokens() const { return int64_t(starts.size()); }
  PackedRows rows() const { return {starts.data(), ends.data(), behind.empty() ? nullptr : behind.data()}; }
  std::vector<int32_t> starts, ends, depths;
  std::vector<int32_t> behind;  // exact; empty without a window
};

struct Pass {
  Pass(const Shape& shape, Type type, int64_t tokens)
      : q(type, tokens, shape.heads * shape.head_size, 1), k(type, tokens, shape.kv_heads * shape.head_size, 2),
        v(type, tokens, k.columns, 3), d_out(type, tokens, q.columns, 4), out(type, tokens, q.columns), d_q(type, tokens, q.columns),
        d_k(type, tokens, k.columns), d_v(type, tokens, k.columns), log_sums(size_t(tokens * shape.heads)) {}

  void forward(Device& device, const Shape& shape, const Seen& seen) {
    device.attention(q.tensor(), k.tensor(), v.tensor(), shape.head_size, seen.rows(), out.tensor(), log_sums.data());
  }
  void backward(Device& device, const Shape& shape, const Seen& seen) {
    device.attention_backward(d_out.tensor(), q.tensor(), k.tensor(), v.tensor(), out.tensor(), log_sums.data(), shape.head_size,
                              seen.rows(), d_q.tensor(), d_k.tensor(), d_v.tensor());
  }
  bool operator==(const Pass& other) const {
    return out == other.out && log_sums == other.log_sums && d_q == other.d_q && d_k == other.d_k && d_v == other.d_v;
  }

  Matrix q, k, v, d_out, out, d_q, d_k, d_v;
  std::vector<float> log_sums;
};

// Definition: o = Σ p v with p = softmax(q k / √D); with δ = d_o · o, d_s = p (d_o · v - δ) / √D.
double worst_error(const Shape& shape, const Seen& seen, const Pass& pass) {
  const int64_t tokens = seen.tokens(), size = shape.head_size, group = shape.heads / shape.kv_heads;
  const double scale = 1 / std::sqrt(double(size));
  std::vector<double> out(size_t(tokens * pass.q.columns)), d_q(out.size()), d_k(size_t(tokens * pass.k.columns)), d_v(d_k.size());
  for (int64_t h = 0; h < shape.heads; h++) {
    const int64_t at = h * size, kv = h / group * size;
    const auto dot = [&](const Matrix& a, int64_t i, int64_t a_at, const Matrix& b, int64_t j, int64_t b_at) {
      double sum = 0;
      for (int64_t c = 0; c < size; c++) sum += double(a.at(i, a_at + c)) * double(b.at(j, b_at + c));
      return sum;
    };
    for (int64_t i = 0; i < tokens; i++) {
      std::vector<int64_t> keys;
      for (int64_t j = seen.starts[i]; j <= i; j++) {
        if (seen.ends[j] > i) keys.push_back(j);
      }
      std::vector<double> p;
      double total = 0, delta = 0;
      for (const int64_t j : keys) total += p.emplace_back(std::exp(scale * dot(pass.q, i, at, pass.k, j, kv)));
      for (size_t n = 0; n < keys.size(); n++) {
        p[n] /= total;
        for (int64_t c = 0; c < size; c++) out[i * pass.q.columns + at + c] += p[n] * double(pass.v.at(keys[n], kv + c));
      }
      for (int64_t c = 0; c < size; c++) delta += double(pass.d_out.at(i, at + c)) * out[i * pass.q.columns + at + c];
      for (size_t n = 0; n < keys.size(); n++) {
        const int64_t j = keys[n];
        const double d_score = p[n] * (dot(pass.d_out, i, at, pass.v, j, kv) - delta) * scale;
        for (int64_t c = 0; c < size; c++) {
          d_q[i * pass.q.columns + at + c] += d_score * double(pass.k.at(j, kv + c));
          d_k[j * pass.k.columns + kv + c] += d_score * double(pass.q.at(i, at + c));
          d_v[j * pass.k.columns + kv + c] += p[n] * double(pass.d_out.at(i, at + c));
        }
      }
    }
  }
  double worst = 0;
  const auto compare = [&](const Matrix& found, const std::vector<double>& wanted) {
    for (int64_t i = 0; i < int64_t(wanted.size()); i++)
      worst = std::max(worst, std::abs(double(found.at(i / found.columns, i % found.columns)) - wanted[i]));
  };
  compare(pass.out, out), compare(pass.d_q, d_q), compare(pass.d_k, d_k), compare(pass.d_v, d_v);
  return worst;
}

void test_packed_rows(const Shape& shape) {
  const Seen seen(shape);
  int64_t pairs = 0;
  for (int64_t i = 0; i < seen.tokens(); i++) pairs += i + 1 - seen.starts[i];
  if (test::is_too_large(pairs, shape.heads, shape.head_size)) return;
  Pass exact(shape, Type::f32, seen.tokens());
  const auto alone = make_cpu_device(1);
  exact.forward(*alone, shape, seen), exact.backward(*alone, shape, seen);
  const double error = worst_error(shape, seen, exact);
  CHECK(error < 2e-5, "%s: %.2g from double precision", shape.name, error);
  // Inputs of the backward pass in bf16 are rounded.
  Pass rounded(shape, Type::f32, seen.tokens());
  rounded.log_sums = exact.log_sums, rounded.out.take(exact.out);
  rounded.backward(*alone, shape, seen);
  rounded.out = exact.out;
  for (const int threads : {1, 2, 16}) {
    Pass same(shape, Type::f32, seen.tokens()), half(shape, Type::bf16, seen.tokens());
    const auto device = make_cpu_device(threads), half_device = make_cpu_device(threads, Type::bf16);
    same.forward(*device, shape, seen), same.backward(*device, shape, seen);
    CHECK(same == exact, "%s: different bits with %d threads", shape.name, threads);
    half.forward(*half_device, shape, seen), half.backward(*half_device, shape, seen);
    CHECK(half == rounded, "%s: different bits in bf16 with %d threads", shape.name, threads);
  }
}

// The uploaded arrays must agree; `behind` may be larger, but not for rows without branches.
void test_uploaded_rows(const Shape& shape) {
  const Seen seen(shape);
  const auto device = make_cpu_device(1);
  Arena arena(*device);
  PackedTokens packed;
  const std::vector<int32_t> tokens(size_t(seen.tokens()));
  for (const Branch& branch : shape.branches) packed.add(tokens.data(), branch.count, branch.depth);
  const std::vector<PackedRows> rows = packed.upload_rows({shape.window, 0, shape.window}, arena);
  CHECK(rows.size() == 3 && rows[0].starts == rows[2].starts && rows[0].ends == rows[1].ends && !rows[1].windowed());
  const bool branches = std::any_of(shape.branches.begin(), shape.branches.end(), [](const Branch& branch) { return branch.depth > 0; });
  CHECK(rows[0].windowed() == (shape.window > 0));
  for (int64_t t = 0; t < seen.tokens(); t++) {
    CHECK(rows[0].starts[t] == seen.starts[t] && rows[0].ends[t] == seen.ends[t], "%s, token %d", shape.name, int(t));
    if (shape.window == 0) continue;
    const int32_t behind = rows[0].behind[t];
    CHECK(branches ? behind >= seen.behind[t] && behind <= seen.ends[t] : behind == seen.behind[t], "%s, token %d", shape.name, int(t));
  }
}

// New tokens of several sequences, some adjacent, over pages in any order.
void pages(Type type, int64_t window) {
  constexpr int64_t heads = 4, kv_heads = 2, size = 32, sequences = 5, table = 4, tokens = 23;
  std::vector<int32_t> positions, owners, tables;
  for (int32_t t = 0; t < tokens; t++) owners.push_back(t * sequences / tokens), positions.push_back(20 + t);
  for (int32_t page = 0; page < sequences * table; page++) tables.push_back((page * 7 + 3) % (sequences * table));
  const PagedBatch batch{positions.data(), owners.data(), tables.data(), table, window};
  const auto outcome = [&](int threads) {
    Matrix q(type, tokens, heads * size, 1), k(type, tokens, kv_heads * size, 2), v(type, tokens, kv_heads * size, 3);
    Matrix out(type, tokens, heads * size);
    Matrix keys(type, sequences * table, kv_heads * size * PagedCache::page_size, 4), values(type, keys.rows, keys.columns, 5);
    make_cpu_device(threads, type)
        ->paged_attention(q.tensor(), k.tensor(), v.tensor(), size, batch, {keys.tensor(), values.tensor()}, out.tensor());
    return out;
  };
  const Matrix alone = outcome(1);
  for (const int threads : {2, 5, 16}) CHECK(outcome(threads) == alone, "%d threads", threads);
}

// A long row keeps all threads busy: no part of its backward pass has more work than a thread's share. With enough rows
// to distribute, nothing is computed twice.
void test_long_rows_are_distributed() {
  constexpr int64_t length = 4096, heads = 14, kv_heads = 2;
  const auto pairs = [](const BackwardPart& part) {
    double sum = 0;
    for (int64_t q = part.queries.start; q < part.queries.end; q++)
      sum += double(std::clamp<int64_t>(q + 1 - part.keys.start, 0, part.keys.count()) * part.heads);
    return sum;
  };
  for (const int threads : {1, 2, 4, 16, 64}) {
    double all = 0, largest = 0;
    bool together = true;
    for (const BackwardPart& part : backward_parts({{0, length}}, heads, kv_heads, threads)) {
      all += pairs(part), largest = std::max(largest, pairs(part));
      together = together && part.to_keys && part.to_queries;
    }
    CHECK(threads > 2 * kv_heads ? largest * threads < 2.5 * all : together, "%d threads: %.3g of %.3g", threads, largest, all);
  }
  const std::vector<Tokens> rows(16, {0, 256});
  for (const BackwardPart& part : backward_parts(rows, heads, kv_heads, 16)) CHECK(part.to_keys && part.to_queries);
}

// Scratch memory stays within attention_bytes; in bf16 this is a small part of the rows in fp32.
void test_memory_bound() {
#ifdef GIGPO_COUNTS_MEMORY
  constexpr int threads = 2;
  const Shape shape{"a long row", 8, 2, 64, {{0, 4096}}};
  if (test::is_too_large(4096, 4096, shape.heads * shape.head_size)) return;
  const Seen seen(shape);
  for (const Type type : {Type::bf16, Type::f32}) {
    Pass pass(shape, type, seen.tokens());
    const auto device = make_cpu_device(threads, type);
    const auto allocated = [] {
      const auto info = mallinfo2();
      return int64_t(info.uordblks + info.hblkhd);
    };
    const int64_t before = allocated();
    pass.forward(*device, shape, seen), pass.backward(*device, shape, seen);
    const int64_t taken = allocated() - before, planned = attention_bytes({shape.head_size, pass.k.columns, 4096, 4096}, type, threads);
    constexpr int64_t lists = 1 << 20;  // lists of parts and visible keys, and packed matrices
    CHECK(taken < planned + lists, "%.2f MB used, %.2f planned", double(taken) / 1e6, double(planned) / 1e6);
    CHECK(planned < 4096 * 4 * (4 * pass.q.columns + 4 * pass.k.columns) / 3, "%.2f MB", double(planned) / 1e6);
  }
#endif
}

}  // namespace

int main() {
  test_memory_bound();
  test_long_rows_are_distributed();
  for (const Shape& shape : shapes) test_uploaded_rows(shape);
  test::on_each_isa([](Isa) {
    for (const Shape& shape : shapes) test_packed_rows(shape);
    for (const Type type : {Type::f32, Type::bf16}) {
      for (const int64_t window : {0, 1, 18, 100}) pages(type, window);
    }
  });
  return test::report();
}
