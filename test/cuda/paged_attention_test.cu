// Paged attention against loops in double, and against itself: a token's bits must not depend on the rest of the batch
// or on the number of tokens of its sequence in it. Pages are in random order, between NaNs.
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/attention.h"
#include "cuda/check.h"
#include "test/core/check.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;

namespace {

constexpr int64_t page_size = PagedCache::page_size;

struct Shape {
  Type type;
  int64_t heads, kv_heads, size;
  int64_t window = 0;

  int64_t columns() const { return (heads + 2 * kv_heads) * size; }
  std::string name() const {
    return name_of(type) + " " + std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads of " +
           std::to_string(size) + (window > 0 ? " with a window of " + std::to_string(window) : "");
  }
};

// Tokens [first, first + count) of a sequence; sequence -1 is padding.
struct Piece {
  int32_t sequence;
  int64_t first, count;
};
using Batch = std::vector<Piece>;

// Queries, keys and values of every token of some sequences.
struct Sequences {
  Sequences(const Shape& shape, std::vector<int64_t> of_lengths) : shape(shape), lengths(std::move(of_lengths)) {
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    DeviceMatrix rounded(shape.type, offsets.back(), shape.columns());
    qkv = rounded.fill(3, 1.5);
  }

  int64_t tokens() const { return offsets.back(); }
  const float* row(int64_t sequence, int64_t position) const {
    return qkv.data() + (offsets[size_t(sequence)] + position) * shape.columns();
  }

  Shape shape;
  std::vector<int64_t> lengths, offsets = {0};
  std::vector<float> qkv;
};

// KV cache that is filled by successive batches.
class Server {
 public:
  Server(const Sequences& sequences, int64_t table_stride, uint32_t stream, const Layout& layout = layouts[0],
         const Layout& cache_layout = layouts[0])
      : table_stride(table_stride), all_(sequences), layout_(layout), tables_(page_tables(stream)),
        keys(sequences.shape.type, pages_, sequences.shape.kv_heads * sequences.shape.size * page_size, cache_layout),
        values(sequences.shape.type, pages_, sequences.shape.kv_heads * sequences.shape.size * page_size, cache_layout),
        device_tables_(tables_) {}

  // Writes output rows by token; those of padding must be zeros.
  void run(const Batch& batch, std::vector<float>& outputs) {
    const Shape& shape = all_.shape;
    const int64_t out_columns = shape.heads * shape.size;
    std::vector<float> rows;
    std::vector<int32_t> positions, sequences;
    std::vector<int64_t> tokens;
    for (const Piece& piece : batch) {
      for (int64_t i = 0; i < piece.count; i++) {
        const bool padding = piece.sequence < 0;
        const float* row = all_.row(padding ? 0 : piece.sequence, padding ? 0 : piece.first + i);
        rows.insert(rows.end(), row, row + shape.columns());
        positions.push_back(padding ? 0 : int32_t(piece.first + i));
        sequences.push_back(piece.sequence);
        tokens.push_back(padding ? -1 : all_.offsets[size_t(piece.sequence)] + piece.first + i);
      }
    }
    const int64_t count = int64_t(tokens.size());
    DeviceMatrix qkv(shape.type, count, shape.columns(), layout_), out(shape.type, count, out_columns, layout_);
    qkv.fill(rows);
    const DeviceArray<int32_t> device_positions(positions), device_sequences(sequences);
    const DeviceArray<char> workspace(
        cuda::paged_attention_workspace(count, shape.heads, shape.kv_heads, shape.size, table_stride));
    const int64_t q = shape.heads * shape.size, k = shape.kv_heads * shape.size;
    const PagedBatch paged = batch_of(device_positions, device_sequences);
    const PagedCache cache = {keys.view, values.view};
    cuda::store_heads(qkv.view.column_range(0, q), qkv.view.column_range(q, k), qkv.view.column_range(q + k, k), shape.size, {},
                      paged, cache, nullptr);
    cuda::paged_attention(qkv.view.column_range(0, q), shape.kv_heads, shape.size, paged, cache, out.view, workspace.data,
                          counters.data, nullptr);
    const std::vector<unsigned> left = counters.read();
    CHECK(std::all_of(left.begin(), left.end(), [](unsigned x) { return x == 0; }), "%s: counters", shape.name().c_str());
    const std::vector<float> found = out.read(shape.name());
    outputs.resize(size_t(all_.tokens() * out_columns), NAN);
    for (int64_t t = 0; t < count; t++) {
      const float* row = found.data() + t * out_columns;
      if (tokens[size_t(t)] >= 0) std::copy(row, row + out_columns, outputs.begin() + tokens[size_t(t)] * out_columns);
      else CHECK(std::all_of(row, row + out_columns, [](float x) { return x == 0; }), "%s: padding", shape.name().c_str());
    }
  }

  PagedBatch batch_of(const DeviceArray<int32_t>& positions, const DeviceArray<int32_t>& sequences) const {
    return {positions.data, sequences.data, device_tables_.data, table_stride, all_.shape.window};
  }

  // Every processed token must be in its page, and no other memory written.
  void check_cache(const std::vector<int64_t>& lengths) {
    const Shape& shape = all_.shape;
    std::vector<float> expected_keys(size_t(keys.view.rows * keys.view.columns), NAN), expected_values = expected_keys;
    for (size_t s = 0; s < lengths.size(); s++) {
      for (int64_t p = 0; p < lengths[s]; p++) {
        const float* row = all_.row(int64_t(s), p) + shape.heads * shape.size;
        for (int64_t i = 0; i < shape.kv_heads * shape.size; i++) {
          const int64_t page = tables_[s * size_t(table_stride) + size_t(p / page_size)], head = i / shape.size;
          const int64_t slot = head * page_size + p % page_size;
          const size_t at = size_t(page * keys.view.columns + slot * shape.size + i % shape.size);
          expected_keys[at] = row[i];
          expected_values[at] = row[shape.kv_heads * shape.size + i];
        }
      }
    }
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      const auto alike = [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); };
      return std::equal(a.begin(), a.end(), b.begin(), alike);
    };
    CHECK(same(keys.read("keys"), expected_keys), "%s", shape.name().c_str());
    CHECK(same(values.read("values"), expected_values), "%s", shape.name().c_str());
  }

  int64_t table_stride;

 private:
  // Pages of every sequence, in random order; -1 after the last.
  std::vector<int32_t> page_tables(uint32_t stream) {
    std::vector<int32_t> free, tables(all_.lengths.size() * size_t(table_stride), -1);
    for (const int64_t length : all_.lengths) pages_ += (length + page_size - 1) / page_size;
    pages_ += 3;
    for (int32_t i = 0; i < pages_; i++) free.push_back(i);
    for (size_t i = free.size(); i > 1; i--) std::swap(free[i - 1], free[random_word(stream, uint32_t(i)) % i]);
    for (size_t s = 0; s < all_.lengths.size(); s++) {
      for (int64_t p = 0; p * page_size < all_.lengths[s]; p++) {
        tables[s * size_t(table_stride) + size_t(p)] = free.back();
        free.pop_back();
      }
    }
    return tables;
  }

  const Sequences& all_;
  Layout layout_;
  int64_t pages_ = 0;
  std::vector<int32_t> tables_;

 public:
  DeviceMatrix keys, values;
  DeviceArray<unsigned> counters{std::vector<unsigned>(cuda::paged_attention_counters)};

 private:
  DeviceArray<int32_t> device_tables_;
};

Batch everything(const Sequences& all) {
  Batch batch;
  for (size_t s = 0; s < all.lengths.size(); s++) batch.push_back({int32_t(s), 0, all.lengths[s]});
  return batch;
}

// Splits each sequence into pieces of random length up to `longest`, one piece per sequence in a batch, with occasional
// padding.
std::vector<Batch> in_pieces(const Sequences& all, uint32_t stream, int64_t longest) {
  std::vector<Batch> batches;
  std::vector<int64_t> done(all.lengths.size(), 0);
  for (uint32_t n = 0;; n++) {
    Batch batch;
    for (size_t s = 0; s < done.size(); s++) {
      const int64_t count = std::min<int64_t>(1 + random_word(stream + uint32_t(s), n) % longest, all.lengths[s] - done[s]);
      if (count == 0) continue;
      batch.push_back({int32_t(s), done[s], count});
      done[s] += count;
    }
    if (batch.empty()) return batches;
    if (n % 3 == 0) batch.push_back({-1, 0, 1 + int64_t(n) % 5});
    batches.push_back(batch);
  }
}

std::vector<float> outputs_of(Server& server, const std::vector<Batch>& batches) {
  std::vector<float> outputs;
  for (const Batch& batch : batches) server.run(batch, outputs);
  return outputs;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Checks each value within the rounding of the weights and the result. `every`: checks one of so many positions, and
// the last.
void check_outputs(const Sequences& all, const std::vector<float>& outputs, int64_t every = 1) {
  const Shape& shape = all.shape;
  const double noise = 3e-5 + (shape.type == Type::bf16 ? 2.0 / 256 : 0), scale = 1 / std::sqrt(double(shape.size));
  int wrong = 0;
  for (size_t s = 0; s < all.lengths.size(); s++) {
    for (int64_t p = 0; p < all.lengths[s]; p++) {
      if (p % every != 0 && p != all.lengths[s] - 1) continue;
      for (int64_t head = 0; head < shape.heads; head++) {
        const int64_t kv_head = head * shape.kv_heads / shape.heads;
        const int64_t k = (shape.heads + kv_head) * shape.size, v = k + shape.kv_heads * shape.size;
        const float* query = all.row(int64_t(s), p) + head * shape.size;
        std::vector<double> sums(size_t(shape.size)), sizes(size_t(shape.size));
        double total = 0;
        for (int64_t key = shape.window > 0 ? std::max<int64_t>(p + 1 - shape.window, 0) : 0; key <= p; key++) {
          const float* row = all.row(int64_t(s), key);
          double score = 0;
          for (int64_t i = 0; i < shape.size; i++) score += double(query[i]) * double(row[k + i]);
          const double weight = std::exp(score * scale);
          total += weight;
          for (int64_t i = 0; i < shape.size; i++) {
            sums[size_t(i)] += weight * double(row[v + i]);
            sizes[size_t(i)] += weight * std::fabs(double(row[v + i]));
          }
        }
        const size_t at = size_t(((all.offsets[s] + p) * shape.heads + head) * shape.size);
        for (size_t i = 0; i < size_t(shape.size); i++) {
          wrong += !(std::fabs(double(outputs[at + i]) - sums[i] / total) <= noise * sizes[i] / total);
        }
      }
    }
  }
  CHECK(wrong == 0, "%s: %d wrong", shape.name().c_str(), wrong);
}

// All tokens at once, in pieces, and one by one: the same bits, and correct.
void check_shape(const Shape& shape, const std::vector<int64_t>& lengths, const Layout& layout = layouts[0],
                 const Layout& cache_layout = layouts[0]) {
  const Sequences all(shape, lengths);
  const int64_t stride = (*std::max_element(lengths.begin(), lengths.end()) + page_size - 1) / page_size + 2;
  Server at_once(all, stride, 1, layout, cache_layout), pieces(all, stride + 40, 2, layout, cache_layout),
      one_by_one(all, stride, 3, layout, cache_layout);
  const std::vector<float> outputs = outputs_of(at_once, {everything(all)});
  check_outputs(all, outputs);
  at_once.check_cache(lengths);
  CHECK(same_bits(outputs_of(pieces, in_pieces(all, 11, 37)), outputs), "%s: in pieces", shape.name().c_str());
  pieces.check_cache(lengths);
  CHECK(same_bits(outputs_of(one_by_one, in_pieces(all, 12, 1)), outputs), "%s: one by one", shape.name().c_str());
}

void test_shapes() {
  const std::vector<int64_t> lengths = {1, 33, 16, 5, 70};
  for (const int64_t size : {16, 32, 64, 128}) check_shape({Type::bf16, 4, 2, size}, lengths);
  for (const int64_t group : {1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 32}) check_shape({Type::bf16, group, 1, 32}, {40, 3});
  check_shape({Type::bf16, 12, 2, 64}, lengths);
  check_shape({Type::bf16, 14, 2, 64}, lengths);
  check_shape({Type::bf16, 14, 2, 128}, {37});
}

void test_windows() {
  const std::vector<int64_t> lengths = {1, 33, 16, 5, 90};
  for (const int64_t window : {1, 16, 21, 200}) {
    for (const int64_t size : {16, 128}) check_shape({Type::bf16, 4, 2, size, window}, lengths);
    check_shape({Type::bf16, 14, 2, 64, window}, lengths);
    check_shape({Type::f32, 4, 2, 64, window}, lengths);
    check_shape({Type::bf16, 4, 2, 80, window}, lengths);
  }
}

void test_plain_path() {
  check_shape({Type::f32, 4, 2, 64}, {1, 33, 16, 5});
  check_shape({Type::f32, 7, 1, 128}, {20, 3});
  check_shape({Type::bf16, 4, 2, 80}, {1, 33, 16, 5});
  check_shape({Type::bf16, 3, 3, 6}, {18, 5});
  check_shape({Type::f32, 3, 1, 10}, {18, 5});
  check_shape({Type::bf16, 40, 1, 32}, {18, 5});
}

void test_layouts() {
  for (const Layout& layout : layouts) {
    for (const Layout& cache_layout : {layouts[0], layouts[1], layouts[3]}) {
      check_shape({Type::bf16, 4, 2, 64}, {21, 18}, layout, cache_layout);
    }
    check_shape({Type::f32, 2, 2, 20}, {21}, layout, layout);
  }
}

// Sequences longer than a span of keys: batches whose spans are distributed over blocks, and batches that are large
// enough.
void test_long_sequences() {
  for (const Shape& shape : {Shape{Type::bf16, 6, 1, 64}, Shape{Type::bf16, 2, 2, 64}, Shape{Type::bf16, 2, 1, 128},
                             Shape{Type::bf16, 6, 1, 64, 530}, Shape{Type::bf16, 2, 1, 128, 70}}) {
    const Sequences all(shape, {1550, 520, 600});
    Server whole(all, 100, 1), pieces(all, 130, 2), again(all, 100, 3);
    const std::vector<float> outputs = outputs_of(whole, {everything(all)});
    check_outputs(all, outputs, 61);
    CHECK(same_bits(outputs_of(pieces, in_pieces(all, 5, 200)), outputs), "%s: in pieces", shape.name().c_str());
    CHECK(same_bits(outputs_of(again, in_pieces(all, 6, 500)), outputs), "%s: in large pieces", shape.name().c_str());
    // Single tokens, while later tokens are already in their pages.
    std::vector<float> repeated = outputs;
    for (const int64_t position : {0, 15, 16, 510, 511, 512, 513, 519, 1023, 1024, 1300, 1535, 1536, 1549}) {
      Batch batch = {{-1, 0, 1}, {0, position, 1}, {-1, 0, 2}};
      if (position < 520) batch.push_back({1, position, 1});
      again.run(batch, repeated);
    }
    CHECK(same_bits(repeated, outputs), "%s: single tokens", shape.name().c_str());
  }
  // One span, with and without more room in the page table.
  const Sequences all({Type::bf16, 2, 1, 64}, {512});
  Server narrow(all, 32, 1), wide(all, 33, 2);
  CHECK(same_bits(outputs_of(narrow, in_pieces(all, 7, 99)), outputs_of(wide, in_pieces(all, 8, 99))));
}

// Blocks that share a row's spans finish in random order (of the emulator): the bits are the same whichever is last.
void test_orders() {
  const Shape shape = {Type::bf16, 6, 2, 64};
  const Sequences all(shape, {1800, 700});
  Server whole(all, 120, 1), server(all, 120, 2);
  const std::vector<float> expected = outputs_of(whole, {everything(all)});
  std::vector<float> outputs;
  server.run({{0, 0, 1791}, {1, 0, 698}}, outputs);
  for (int i = 0; i < 12; i++) {
    server.run({{0, 1791, 9}, {-1, 0, 1}, {1, 698, 2}}, outputs);
    CHECK(same_bits(outputs, expected), "%d", i);
  }
}

// Many sequences of one token each: more blocks than a GPU needs, with row tiles of one and two.
void test_large_batches() {
  const Shape shape = {Type::bf16, 4, 2, 32};
  std::vector<int64_t> lengths;
  for (uint32_t i = 0; i < 530; i++) lengths.push_back(2 + random_word(40, i) % 6);
  lengths[7] = 530;
  lengths[8] = 1040;
  const Sequences all(shape, lengths);
  Server small(all, 70, 1), large(all, 70, 2);
  const std::vector<float> outputs = outputs_of(small, {everything(all)});
  check_outputs(all, outputs, 97);
  Batch beginnings, ends;
  for (size_t s = 0; s < lengths.size(); s++) {
    beginnings.push_back({int32_t(s), 0, lengths[s] - 1});
    ends.push_back({int32_t(s), lengths[s] - 1, 1});
  }
  CHECK(same_bits(outputs_of(large, {beginnings, ends}), outputs), "530 at a time");
  std::vector<float> repeated = outputs;
  large.run(Batch(ends.begin(), ends.begin() + 300), repeated);
  large.run(Batch(ends.begin() + 5, ends.begin() + 12), repeated);
  CHECK(same_bits(repeated, outputs), "300 and 7 at a time");
}

// One graph, for every step of some sequences and for other sequences.
void test_graph() {
  const Shape shape = {Type::bf16, 6, 1, 64};
  const Sequences all(shape, {530, 40, 1030});
  Server direct(all, 80, 1), server(all, 80, 2);
  const std::vector<float> outputs = outputs_of(direct, {everything(all)});
  std::vector<float> beginnings;
  server.run({{0, 0, 510}, {1, 0, 37}, {2, 0, 1022}}, beginnings);

  constexpr int64_t rows = 4;
  const int64_t q = shape.heads * shape.size, k = shape.kv_heads * shape.size;
  DeviceMatrix qkv(shape.type, rows, shape.columns()), out(shape.type, rows, q);
  const DeviceArray<int32_t> positions(rows), sequences(rows);
  const DeviceArray<char> workspace(
      cuda::paged_attention_workspace(rows, shape.heads, shape.kv_heads, shape.size, server.table_stride));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const PagedBatch batch = server.batch_of(positions, sequences);
  const PagedCache cache = {server.keys.view, server.values.view};
  cuda::store_heads(qkv.view.column_range(0, q), qkv.view.column_range(q, k), qkv.view.column_range(q + k, k), shape.size, {}, batch,
                    cache, stream);
  cuda::paged_attention(qkv.view.column_range(0, q), shape.kv_heads, shape.size, batch, cache, out.view, workspace.data,
                        server.counters.data, stream);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));

  struct Step {
    std::vector<int32_t> sequences, positions;
  };
  const Step steps[] = {{{0, 1, -1, 2}, {510, 37, 0, 1022}}, {{2, 2, 0, 0}, {1023, 1024, 511, 512}},
                        {{-1, 0, 1, 1}, {0, 513, 38, 39}},   {{2, -1, -1, -1}, {1025, 0, 0, 0}}};
  for (const Step& step : steps) {
    std::vector<float> values;
    for (size_t i = 0; i < rows; i++) {
      const float* row = all.row(std::max(0, step.sequences[i]), step.positions[i]);
      values.insert(values.end(), row, row + shape.columns());
    }
    qkv.fill(values);
    CUDA_CHECK(cudaMemcpy(positions.data, step.positions.data(), positions.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(sequences.data, step.sequences.data(), sequences.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const std::vector<float> found = out.read("graph");
    for (size_t i = 0; i < rows; i++) {
      if (step.sequences[i] < 0) continue;
      const int64_t token = all.offsets[size_t(step.sequences[i])] + step.positions[i];
      CHECK(std::memcmp(&found[i * size_t(q)], &outputs[size_t(token * q)], size_t(q) * sizeof(float)) == 0, "position %d",
            int(step.positions[i]));
    }
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void test_no_tokens() {
  const Tensor nothing = {nullptr, Type::bf16, 0, 64, 64};
  cuda::store_heads(nothing, nothing, nothing, 64, {}, {}, {}, nullptr);
  cuda::paged_attention(nothing, 1, 64, {}, {}, nothing, nullptr, nullptr, nullptr);
  CHECK(cuda::paged_attention_workspace(0, 2, 1, 64, 100) == 0);
}

constexpr gigpo::test::Test tests[] = {{"shapes", test_shapes},
                          {"windows", test_windows},
                          {"the general kernels", test_plain_path},
                          {"layouts", test_layouts},
                          {"long sequences", test_long_sequences},
                          {"orders", test_orders},
                          {"large batches", test_large_batches},
                          {"CUDA graph", test_graph},
                          {"no tokens", test_no_tokens}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
