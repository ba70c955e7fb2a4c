// Tiling of the matrix multiplication in bf16. All data is packed, because the kernel needs pairs along k: panels of B and tiles of A, by all
// threads. Then a thread goes through the panels with as many tiles as fit in its L2 cache.
#include "core/cpu/matmul_bf16.h"

#include <algorithm>

#include "core/cpu/kernels_bf16.h"
#include "core/cpu/matmul_kernel.h"

namespace gigpo::cpu {
namespace {

constexpr int64_t b_group = 1 << 20;   // maximum words of B that are packed at a time
constexpr int64_t a_group = 1 << 20;   // maximum words of A that are packed at a time
constexpr int64_t a_part = 1 << 16;    // words of A that a thread processes at a time: a quarter of its L2 cache
constexpr int64_t packed_together = 8;  // groups that are packed together, so that rows of the source are read in longer pieces
constexpr int64_t sums_rows = 1024;    // rows of C whose sums are kept in fp32 at a time
constexpr int64_t small_work = 1 << 15;  // pairs of multiply-adds that take less time than a second thread needs to join

thread_local AlignedFloats a_buffer, b_buffer, sums_buffer;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

uint32_t* words(const AlignedFloats& x) { return reinterpret_cast<uint32_t*>(x.data()); }

// View of a factor for the kernel: `extent` rows of A or columns of B, in groups of `group`, each packed [pairs][width].
class Factor {
 public:
  Factor(Tensor x, bool k_first, int64_t extent, int64_t group, int64_t width)
      : x_(x), k_first_(k_first), extent_(extent), group_(group), width_(width), count_(ceil_div(extent, group)) {}

  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  int64_t begin(int64_t i) const { return i * group_; }
  int64_t size(int64_t i) const { return std::min(group_, extent_ - begin(i)); }

  // Groups [first, end), `distance` words apart, of k in [k0, k0 + k). `rows_step`: distance of rows if packed by rows, else 0.
  void pack(int64_t first, int64_t end, int64_t k0, int64_t k, uint32_t* packed, int64_t distance, int64_t rows_step) const {
    if (k_first_ && rows_step == 0) {
      const int64_t columns = std::min(extent_, begin(end)) - begin(first);
      return bf16_kernels(isa()).pack(packed, distance, width_, x_.halves() + k0 * x_.stride + begin(first), x_.stride, group_, columns, k);
    }
    for (int64_t i = first; i < end; i++, packed += distance) pack_group(i, k0, k, packed, rows_step);
  }

 private:
  void pack_group(int64_t i, int64_t k0, int64_t k, uint32_t* packed, int64_t rows_step) const {
    const int64_t first = begin(i), n = size(i);
    const uint16_t* const source = x_.halves() + (k_first_ ? k0 * x_.stride + first : first * x_.stride + k0);
    if (rows_step > 0) return bf16_kernels(isa()).pack_rows(packed, rows_step, source, x_.stride, k_first_, n, k);
    const bool aligned = reinterpret_cast<uintptr_t>(source) % sizeof(float) == 0;
    if (k % 2 == 0 && x_.stride % 2 == 0 && aligned) {  // already a matrix of words
      const auto* words = reinterpret_cast<const float*>(source);
      return matmul_kernel(isa()).pack(reinterpret_cast<float*>(packed), width_, words, x_.stride / 2, true, n, k / 2);
    }
    for (int64_t p = 0; p < k; p += 2) {
      for (int64_t x = 0; x < n; x++) {
        const uint16_t* pair = source + x * x_.stride + p;
        packed[p / 2 * width_ + x] = pair[0] | (p + 1 < k ? uint32_t(pair[1]) << 16 : 0);
      }
    }
  }

  Tensor x_;
  bool k_first_;
  int64_t extent_, group_, width_, count_;
};

class Product {
 public:
  // `weight`: packed B, or null.
  Product(ThreadPool& pool, const Bf16Matmul& x, int64_t k, const PackedWeight* weight)
      : x_(x), k_(k), weight_(weight), kernels_(bf16_kernels(isa())), pool_(pool),
        alone_(x.c.rows * x.c.columns * k <= 2 * small_work),
        a_(x.a, x.transpose_a, x.c.rows, rows_of_tile(x.c.rows), kernels_.row_width),
        b_(x.b, !x.transpose_b, x.c.columns, matmul_kernel(isa()).columns, matmul_kernel(isa()).columns) {}

  void run() const {
    for (int64_t k0 = 0; k0 == 0 || k0 < k_; k0 += bf16_k_block) {  // once when k = 0
      const int64_t k = std::min(bf16_k_block, k_ - k0), pairs = (k + 1) / 2;
      const int64_t a_count = std::max<int64_t>(1, a_group / std::max<int64_t>(1, pairs * a_.width()));
      const int64_t b_count = std::max<int64_t>(1, b_group / std::max<int64_t>(1, pairs * b_.width()));
      for (int64_t panel = 0; panel < b_.count(); panel += weight_ ? b_.count() : b_count) {
        const int64_t panels = std::min(weight_ ? b_.count() : b_count, b_.count() - panel);
        // A packed weight is a single block of pairs.
        const Packed b = weight_ ? Packed{reinterpret_cast<uint32_t*>(weight_->data()) + k0 / 2 * b_.width(), weight_->k(), 0}
                                 : pack(b_, b_buffer, panel, panels, k0, k, false);
        for (int64_t tile = 0; tile < a_.count(); tile += a_count) {
          const int64_t tiles = std::min(a_count, a_.count() - tile);
          multiply(pack(a_, a_buffer, tile, tiles, k0, k, kernels_.pack_rows != nullptr), tile, tiles, b, panel, panels, k0, pairs);
        }
      }
    }
  }

 private:
  // Tiles of nearly equal size: a few rows more than full tiles would be computed slowly, in a tile with few independent sums. An even number,
  // since bfmmla multiplies two rows; AMX is fastest with full tiles.
  static int64_t rows_of_tile(int64_t rows) {
    const Bf16Kernels& kernels = bf16_kernels(isa());
    if (kernels.pack_rows) return kernels.rows;
    const int64_t tiles = std::max<int64_t>(1, ceil_div(rows, kernels.rows));
    return std::min(kernels.rows, ceil_div(ceil_div(rows, tiles), 2) * 2);
  }

  // Groups starting with `first`; consecutive groups are `depth` pairs apart, as are the rows of a group that is packed by rows.
  struct Packed {
    uint32_t* data;
    int64_t depth, first;
    uint32_t* at(const Factor& of, int64_t i) const { return data + (i - first) * depth * of.width(); }
  };

  Packed pack(const Factor& factor, AlignedFloats& buffer, int64_t first, int64_t count, int64_t k0, int64_t k,
              bool by_rows) const {
    const int64_t pairs = (k + 1) / 2, depth = by_rows ? ceil_div(pairs, Bf16Kernels::row_pairs) * Bf16Kernels::row_pairs : pairs;
    buffer.reserve(size_t(count * depth * factor.width()));
    const Packed packed{words(buffer), depth, first};
    const int64_t parts = std::min(count, ceil_div(count, packed_together * threads()) * threads());
    for_each(parts, [&](int64_t part) {
      const int64_t begin = first + count * part / parts, end = first + count * (part + 1) / parts;
      factor.pack(begin, end, k0, k, packed.at(factor, begin), depth * factor.width(), by_rows ? depth : 0);
    });
    return packed;
  }

  // Enough parts for all threads: of the rows if these are many, else of the columns, so that each panel is read by one thread.
  void multiply(const Packed& a, int64_t first_tile, int64_t tiles, const Packed& b, int64_t first_panel, int64_t panels,
                int64_t k0, int64_t pairs) const {
    const int64_t threads = this->threads(), together = std::clamp<int64_t>(a_part / std::max<int64_t>(1, pairs * a_.width()), 1, 8);
    int64_t row_parts = ceil_div(tiles, together), column_parts = 1;
    if (row_parts >= threads) row_parts = std::min(tiles, ceil_div(row_parts, threads) * threads);
    else column_parts = std::min(panels, ceil_div(4 * threads, row_parts));
    for_each(row_parts * column_parts, [&](int64_t part) {
      const int64_t row = part / column_parts, column = part % column_parts;
      for (int64_t j = panels * column / column_parts; j < panels * (column + 1) / column_parts; j++) {
        for (int64_t i = tiles * row / row_parts; i < tiles * (row + 1) / row_parts; i++) {
          write_tile(first_tile + i, a, first_panel + j, b, k0, pairs);
        }
      }
    });
  }

  void write_tile(int64_t tile, const Packed& a, int64_t panel, const Packed& b, int64_t k0, int64_t pairs) const {
    const Tensor c = x_.c.row_range(a_.begin(tile), a_.size(tile)).column_range(b_.begin(panel), b_.size(panel));
    const uint16_t* bias = k0 == 0 && x_.bias ? x_.bias.halves() + b_.begin(panel) : nullptr;
    const int64_t a_step = kernels_.pack_rows ? a.depth : a_.width();
    kernels_.tile(c.rows, pairs, a.at(a_, tile), a_step, b.at(b_, panel), b_.width(), c.data, c.stride, c.type == Type::bf16, c.columns,
                  x_.accumulate || k0 > 0, bias);
  }

  int64_t threads() const { return alone_ ? 1 : pool_.size(); }

  template <class F>
  void for_each(int64_t count, F&& body) const {
    if (!alone_) return pool_.parallel_for(count, body);
    for (int64_t i = 0; i < count; i++) body(i);
  }

  const Bf16Matmul& x_;
  const int64_t k_;
  const PackedWeight* const weight_;
  const Bf16Kernels& kernels_;
  ThreadPool& pool_;
  const bool alone_;
  const Factor a_, b_;
};

void run(ThreadPool& pool, const Bf16Matmul& x, const PackedWeight* weight) {
  const int64_t k = x.transpose_a ? x.a.rows : x.a.columns;
  const Tensor c = x.c;
  if (c.type == Type::f32 || k <= bf16_k_block) return Product(pool, x, k, weight).run();
  // Sums over several blocks of k are kept in fp32 until the last block. The number of rows is limited to save memory, but large enough that
  // packing B again for each group of rows is negligible.
  if (c.rows > sums_rows) {
    for (int64_t first = 0; first < c.rows; first += sums_rows) {
      const int64_t count = std::min(sums_rows, c.rows - first);
      Bf16Matmul part = x;
      part.a = x.transpose_a ? x.a.column_range(first, count) : x.a.row_range(first, count);
      part.c = c.row_range(first, count);
      run(pool, part, weight);
    }
    return;
  }
  Bf16Matmul exact = x;
  exact.c = {sums_buffer.reserve(size_t(c.rows * c.columns)), Type::f32, c.rows, c.columns, c.columns};
  const auto half_row = [&](int64_t r) { return c.halves() + r * c.stride; };
  const auto row = [&](int64_t r) { return exact.c.floats() + r * c.columns; };
  if (x.accumulate) pool.parallel_for(c.rows, [&](int64_t r) { bf16_kernels(isa()).widen(c.columns, half_row(r), row(r)); });
  Product(pool, exact, k, weight).run();
  pool.parallel_for(c.rows, [&](int64_t r) { bf16_kernels(isa()).round(c.columns, row(r), half_row(r)); });
}

}  // namespace

void matmul(ThreadPool& pool, const Bf16Matmul& product) { run(pool, product, nullptr); }

void pack(ThreadPool& pool, Tensor weight, PackedWeight& packed) {
  packed.pack(pool, static_cast<const float*>(weight.data), weight.rows, weight.columns / 2);
}

void matmul_packed(ThreadPool& pool, const Bf16Matmul& product, const PackedWeight& weight) { run(pool, product, &weight); }

}  // namespace gigpo::cpu
