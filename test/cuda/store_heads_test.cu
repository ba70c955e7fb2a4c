// The kernel between projection and attention against the four operations that it replaces: query norm, key norm,
// rotation and store into pages.
#include "cuda/attention.h"
#include "cuda/operations.h"
#include "test/cuda/device_matrix.h"
#include "test/cuda/on_card.h"

using namespace gigpo;
using namespace gigpo::test;

namespace {

constexpr int64_t page_size = PagedCache::page_size, longest = 50;

struct Shape {
  int64_t heads, kv_heads, size;
};

// Tokens of two sequences with interleaved pages, and a padding token.
const std::vector<int32_t> positions = {3, 4, 15, 16, 31, 0, 0, 17}, sequences = {0, 0, 0, 0, 0, -1, 1, 1}, tables = {5, 2, 0, 4};
constexpr int64_t pages = 6, table_stride = 2;

void check(Type type, const Shape& shape, const Layout& layout, bool normed) {
  const int64_t tokens = int64_t(positions.size()), half = shape.size / 2, q = shape.heads * shape.size, kv = shape.kv_heads * shape.size;
  const std::string what = name_of(type) + " " + std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + " heads of " +
                           std::to_string(shape.size) + " " + layout.name + (normed ? ", normed" : "");
  std::vector<float> cosine, sine;
  for (int64_t i = 0; i < longest * half; i++) {
    const double angle = double(i / half) * std::pow(10000.0, -double(i % half) / double(half));
    cosine.push_back(float(std::cos(angle))), sine.push_back(float(std::sin(angle)));
  }
  const DeviceArray<float> device_cosine(cosine), device_sine(sine);
  const DeviceArray<int32_t> device_positions(positions), device_sequences(sequences), device_tables(tables);
  const PagedBatch batch = {device_positions.data, device_sequences.data, device_tables.data, table_stride};
  DeviceMatrix one(type, tokens, q + 2 * kv, layout), apart(type, tokens, q + 2 * kv, layout);
  const std::vector<float> projected = one.fill(3, 1.5);
  apart.fill(projected);
  DeviceMatrix query_norm(type, 1, shape.size), key_norm(type, 1, shape.size);
  query_norm.fill(5), key_norm.fill(6);
  DeviceMatrix keys(type, pages, kv * page_size, layout), values(type, pages, kv * page_size, layout);

  HeadTransform transform{.epsilon = 1e-5f, .rotary = {device_positions.data, device_cosine.data, device_sine.data}};
  const float offset = shape.size == 16 ? 1 : 0;
  if (normed) transform.query_norm = {query_norm.view, offset}, transform.key_norm = {key_norm.view, offset};
  cuda::store_heads(one.view.column_range(0, q), one.view.column_range(q, kv), one.view.column_range(q + kv, kv), shape.size,
                    transform, batch, {keys.view, values.view}, nullptr);
  if (normed) {
    const Tensor query = apart.view.column_range(0, q), key = apart.view.column_range(q, kv);
    cuda::rms_norm(query, {query_norm.view, offset}, shape.heads, 1e-5f, query, nullptr, nullptr);
    cuda::rms_norm(key, {key_norm.view, offset}, shape.kv_heads, 1e-5f, key, nullptr, nullptr);
  }
  cuda::rotate(apart.view.column_range(0, q + kv), shape.size, transform.rotary, false, nullptr);

  const std::vector<float> found = one.read(what), expected = apart.read(what);
  const std::vector<float> found_keys = keys.read(what), found_values = values.read(what);
  const size_t columns = size_t(q + 2 * kv);
  // If rms_norm uses more than eight lanes, its sums of squares have another order: rarely a different last digit
  // before each rounding.
  const bool same_order = shape.size * bytes_of(type) <= 512 && (layout.name == layouts[0].name || layout.name == layouts[1].name);
  const double digit = type == Type::f32 ? 4e-7 : 1.0 / 128;
  const auto near = [&](float a, float b) { return std::fabs(a - b) <= digit * std::fmax(std::fabs(b), 0.5); };
  std::vector<bool> written(found_keys.size());
  int64_t other = 0;
  for (int64_t t = 0; t < tokens; t++) {
    if (sequences[size_t(t)] < 0) continue;
    for (int64_t i = 0; i < q; i++) {
      const float a = found[size_t(t) * columns + size_t(i)], b = expected[size_t(t) * columns + size_t(i)];
      CHECK(near(a, b), "%s, token %d, query %d: %g, not %g", what.c_str(), int(t), int(i), a, b);
      other += a != b;
    }
    const int64_t page = tables[size_t(sequences[size_t(t)] * table_stride + positions[size_t(t)] / page_size)];
    for (int64_t i = 0; i < kv; i++) {
      const int64_t slot = (i / shape.size * page_size + positions[size_t(t)] % page_size) * shape.size + i % shape.size;
      const auto at = size_t(page * kv * page_size + slot), from = size_t(t) * columns + size_t(q + i);
      CHECK(near(found_keys[at], expected[from]), "%s, token %d, key %d: %g, not %g", what.c_str(), int(t), int(i), found_keys[at],
            expected[from]);
      CHECK(found_values[at] == projected[from + size_t(kv)], "%s, token %d, value %d", what.c_str(), int(t), int(i));
      other += found_keys[at] != expected[from];
      written[at] = true;
    }
  }
  if (same_order) CHECK(other == 0, "%s: %d differ", what.c_str(), int(other));
  for (size_t i = 0; i < written.size(); i++) {
    CHECK(written[i] || (std::isnan(found_keys[i]) && std::isnan(found_values[i])), "%s: %d was written", what.c_str(), int(i));
  }
}

void shapes() {
  for (const Type type : {Type::f32, Type::bf16})
    for (const Shape& shape : {Shape{14, 2, 64}, Shape{3, 1, 128}, Shape{2, 2, 256}, Shape{1, 1, 2}, Shape{5, 5, 6}, Shape{4, 2, 16}})
      for (const Layout& layout : layouts)
        for (const bool normed : {false, true}) check(type, shape, layout, normed);
}

constexpr gigpo::test::Test tests[] = {{"shapes", shapes}};

}  // namespace

int main() { return gigpo::test::on_card(tests); }
