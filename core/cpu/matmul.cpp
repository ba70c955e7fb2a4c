// Tiling of the matrix multiplication (after Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 2008). A tile
// is a few rows of A times a panel of B, two vectors wide. Data that is read often is packed first, so that a tile reads it in order.
// Panels of B are packed by all threads, for a part of k at a time; tiles of A by the thread that computes their rows, into its own cache.
#include "core/cpu/matmul.h"

#include <algorithm>
#include <new>

#include "core/cpu/aligned_memory.h"
#include "core/cpu/matmul_kernel.h"

namespace gigpo::cpu {
namespace {

constexpr int64_t k_group = 2 * k_block;      // maximum extent of k that is packed at a time
constexpr int64_t b_group = 1 << 20;          // maximum floats of B that are packed at a time
constexpr int64_t row_block = 112;            // maximum rows of A that a thread packs at a time: with k_block a quarter of its L2 cache
constexpr int64_t in_place_uses = 8;          // data that is read at most this often is not packed, if possible
constexpr int64_t small_a = 1 << 17;          // floats of A that fit in a thread's L2 cache together with the panels
constexpr int64_t panels_together = 4;        // panels of B that are packed together, so that rows of the source are read in longer pieces
constexpr int64_t rows_of_each = 768;         // maximum rows of A for which each thread reads all of A instead of panels packed by others
constexpr int64_t small_work = 32 * 32 * 32;  // multiply-adds that take less time than a second thread needs to join

thread_local AlignedFloats a_buffer, b_buffer;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Range {
  // The i-th of `parts` nearly equal parts of [0, total).
  static Range part(int64_t total, int64_t parts, int64_t i) { return {total * i / parts, total * (i + 1) / parts}; }
  int64_t size() const { return end - begin; }
  int64_t begin, end;
};

// View of A or B for the kernel: element (p, x), where p is the index along k and x the row or column of C.
struct Operand {
  const float* at(int64_t p, int64_t x) const { return data + (transposed ? x * ld + p : p * ld + x); }
  const float* data;
  int64_t ld;
  bool transposed;  // stored [x][p], not [p][x]
};

// Consecutive tiles of A or panels of B, starting with `first`, each packed [depth][width] and starting at p = k0.
struct Packed {
  float* at(int64_t i, int64_t p) const { return data + ((i - first) * depth + p - k0) * width; }
  float* data;
  int64_t width, depth, first, k0;
};

// Operand of a tile: element (p, x) is data[p * step + x].
struct Slice {
  const float* data;
  int64_t step;
};

class Product {
 public:
  // `pool` null: only the calling thread. `weight`: packed B, or null.
  Product(ThreadPool* pool, const MatmulArguments& x, const PackedWeight* weight)
      : x_(x), a_{x.a, x.lda, !x.ta}, b_{x.b, x.ldb, x.tb}, weight_(weight), kernel_(matmul_kernel(isa())),
        pool_(x.m * x.n * x.k > small_work ? pool : nullptr), threads_(pool_ ? pool_->size() : 1),
        tiles_(ceil_div(x.m, kernel_.rows)), panels_(ceil_div(x.n, kernel_.columns)),
        rows_(x.m / std::max<int64_t>(1, tiles_)), larger_(x.m - rows_ * tiles_) {}

  void run() const {
    const int64_t depth = std::max<int64_t>(1, weight_ ? x_.k : std::min(x_.k, k_group));
    const int64_t count = weight_ ? panels_ : std::max<int64_t>(1, b_group / (depth * kernel_.columns));
    for (int64_t panel = 0; panel < panels_; panel += count)
      for (int64_t k0 = 0; k0 == 0 || k0 < x_.k; k0 += depth)  // once when k = 0
        run_group(panel, std::min(panel + count, panels_), k0, std::min(k0 + depth, x_.k));
  }

 private:
  // C[all][panels] (+)= A[all][k0, k1) · B[k0, k1)[panels]
  void run_group(int64_t first_panel, int64_t end_panel, int64_t k0, int64_t k1) const {
    const int64_t panel_count = end_panel - first_panel;
    const Packed b = weight_ ? Packed{weight_->data(), kernel_.columns, x_.k, 0, 0}
                             : pack_b(first_panel, panel_count, k0, k1 - k0);
    // Enough parts for all threads: parts of the rows if there are many, else of the columns, so that each panel is
    // read by one thread. Tiles that several parts read are packed once for all.
    int64_t row_parts = ceil_div(x_.m, row_block), column_parts = 1;
    if (packers_multiply(panel_count)) {
      row_parts = 1;
      column_parts = panel_count;
    } else if (row_parts >= threads_) {
      row_parts = std::min(tiles_, ceil_div(row_parts, threads_) * threads_);
    } else {
      column_parts = std::min(panel_count, ceil_div(4 * threads_, row_parts));
      row_parts = std::clamp(ceil_div(threads_, column_parts), row_parts, tiles_);
    }
    const bool share_a = column_parts > 1 && !tiles_in_place();
    Packed shared_a{nullptr, kernel_.row_width, k1 - k0, 0, k0};
    if (share_a) {
      shared_a.data = a_buffer.reserve(size_t(tiles_ * shared_a.depth * shared_a.width));
      for_each(tiles_, [&](int64_t tile) { pack_tiles(shared_a, {tile, tile + 1}, k1 - k0); });
    }
    for_each(row_parts * column_parts, [&](int64_t part) {
      const Range tiles = Range::part(tiles_, row_parts, part / column_parts);
      const Range panels = Range::part(panel_count, column_parts, part % column_parts);
      for (int64_t p = k0; p == k0 || p < k1; p += k_block) {
        const int64_t depth = std::min(k_block, k1 - p);
        Packed a = shared_a;
        if (!share_a) {
          a = {a_buffer.reserve(size_t(tiles.size() * depth * a.width)), a.width, depth, tiles.begin, p};
          pack_tiles(a, tiles, depth);
        }
        for (int64_t panel = first_panel + panels.begin; panel < first_panel + panels.end; panel++)
          for (int64_t tile = tiles.begin; tile < tiles.end; tile++)
            multiply(tile, panel, p, depth, tile_slice(a, tile, p), panel_slice(b, panel, p));
      }
    });
  }

  void multiply(int64_t tile, int64_t panel, int64_t p, int64_t depth, Slice a, Slice b) const {
    const Range row = rows(tile);
    const int64_t column = panel * kernel_.columns;
    const bool first = p == 0;
    const auto tiles = a_.transposed && tile_in_place(tile) ? kernel_.row_tile : kernel_.tile;
    tiles[row.size() - 1](depth, a.data, a.step, b.data, b.step, x_.c + row.begin * x_.ldc + column, x_.ldc,
                                 columns(panel), x_.accumulate || !first,
                                 first && x_.bias ? x_.bias + column : nullptr);
  }

  Packed pack_b(int64_t first_panel, int64_t count, int64_t k0, int64_t depth) const {
    const int64_t width = kernel_.columns;
    const Packed packed{b_buffer.reserve(size_t(count * depth * width)), width, depth, first_panel, k0};
    // As many parts for each thread, for packers_multiply.
    const int64_t parts = std::min(count, ceil_div(ceil_div(count, panels_together), threads_) * threads_);
    for_each(parts, [&](int64_t part) {
      const Range panels = Range::part(count, parts, part);
      pack_panels(packed, {first_panel + panels.begin, first_panel + panels.end}, depth);
    });
    return packed;
  }

  void pack_panels(const Packed& b, Range panels, int64_t depth) const {
    const auto source = [&](int64_t panel) { return b_.at(b.k0, panel * b.width); };
    int64_t whole = 0;  // leading panels that are packed together
    if (!b_.transposed) {
      whole = std::min(panels.end, x_.n / b.width) - panels.begin;
      if (whole > 0 && !panel_in_place(panels.begin))
        kernel_.pack_groups(b.at(panels.begin, b.k0), b.depth * b.width, b.width, source(panels.begin), b_.ld, whole, b.width, 0, depth);
    }
    for (int64_t panel = panels.begin + whole; panel < panels.end; panel++) {
      if (!panel_in_place(panel)) kernel_.pack(b.at(panel, b.k0), b.width, source(panel), b_.ld, b_.transposed, columns(panel), depth);
    }
  }

  void pack_tiles(const Packed& a, Range tiles, int64_t depth) const {
    if (tiles_in_place()) return;
    if (!a_.transposed) {
      const int64_t larger = std::clamp<int64_t>(larger_ - tiles.begin, 0, tiles.size());
      kernel_.pack_groups(a.at(tiles.begin, a.k0), a.depth * a.width, a.width, a_.at(a.k0, rows(tiles.begin).begin), a_.ld, tiles.size(), rows_,
                          larger, depth);
      return;
    }
    for (int64_t tile = tiles.begin; tile < tiles.end; tile++) {
      const Range row = rows(tile);
      if (!tile_in_place(tile)) kernel_.pack(a.at(tile, a.k0), a.width, a_.at(a.k0, row.begin), a_.ld, true, row.size(), depth);
    }
  }

  Slice tile_slice(const Packed& a, int64_t tile, int64_t p) const {
    if (!tile_in_place(tile)) return {a.at(tile, p), a.width};
    return {a_.at(p, rows(tile).begin), a_.ld};
  }

  Slice panel_slice(const Packed& b, int64_t panel, int64_t p) const {
    if (weight_ || !panel_in_place(panel)) return {b.at(panel, p), b.width};
    return {b_.at(p, panel * kernel_.columns), b_.ld};
  }

  // Whether only panels of B are packed, in equal shares per thread, and A is small enough for each thread to read
  // completely. Then the part of C that a thread computes has the panels that it packed itself, and no panel is fetched
  // from another core's cache.
  bool packers_multiply(int64_t panel_count) const {
    return threads_ > 1 && !weight_ && tiles_in_place() && x_.m <= rows_of_each && panel_count % threads_ == 0;
  }

  // A few rows that all threads read are not packed: waiting for the packing would take longer than packed tiles save.
  bool tiles_in_place() const {
    const bool all_read_few = threads_ > 1 && x_.m <= row_block && a_.transposed && x_.m * x_.k <= small_a;
    return panels_ <= in_place_uses || all_read_few;
  }
  bool tile_in_place(int64_t tile) const { return tiles_in_place() || (a_.transposed && rows(tile).size() == 1); }
  // The kernel reads whole vectors of b.
  bool panel_in_place(int64_t panel) const {
    return !b_.transposed && tiles_ <= in_place_uses && columns(panel) % kernel_.lanes == 0;
  }

  // Rows of a tile. Tile sizes differ by at most one row, larger tiles first. Avoids a division, which is noticeable for small tiles.
  Range rows(int64_t tile) const {
    const int64_t begin = tile * rows_ + std::min(tile, larger_);
    return {begin, begin + rows_ + (tile < larger_)};
  }
  int64_t columns(int64_t panel) const { return std::min(kernel_.columns, x_.n - panel * kernel_.columns); }

  template <class F>
  void for_each(int64_t count, F&& body) const {
    if (pool_) return pool_->parallel_for(count, body);
    for (int64_t i = 0; i < count; i++) body(i);
  }

  const MatmulArguments& x_;
  const Operand a_, b_;
  const PackedWeight* const weight_;
  const MatmulKernel& kernel_;
  ThreadPool* const pool_;
  const int64_t threads_, tiles_, panels_;
  const int64_t rows_, larger_;  // rows per tile, and number of tiles with one more row
};

}  // namespace

void matmul(ThreadPool& pool, const MatmulArguments& arguments) { Product(&pool, arguments, nullptr).run(); }

void matmul_single(const MatmulArguments& arguments) { Product(nullptr, arguments, nullptr).run(); }

float* AlignedFloats::reserve(size_t count) {
  if (count > capacity_) {
    data_.reset();  // first, so that old and new memory are never allocated at the same time
    capacity_ = 0;
    data_.reset(static_cast<float*>(allocate_aligned(count * sizeof(float))));
    if (!data_) throw std::bad_alloc();
    capacity_ = count;
  }
  return data_.get();
}

void AlignedFloats::Free::operator()(float* data) const { release_aligned(data); }

int64_t packed_size(int64_t n, int64_t k) {
  const int64_t width = matmul_kernel(isa()).columns;
  return ceil_div(n, width) * width * k;
}

void PackedWeight::pack(ThreadPool& pool, const float* w, int64_t n, int64_t k) {
  const MatmulKernel& kernel = matmul_kernel(isa());
  const int64_t width = kernel.columns, panels = ceil_div(n, width);
  float* const packed = storage_.reserve(size_t(packed_size(n, k)));
  pool.parallel_for(panels, [&](int64_t i) {
    const int64_t column = i * width;
    kernel.pack(packed + column * k, width, w + column * k, k, true, std::min(width, n - column), k);
  });
  n_ = n, k_ = k;
}

void matmul_packed(ThreadPool& pool, int64_t m, const float* x, int64_t ldx, const PackedWeight& w, float* y,
                   int64_t ldy, const float* bias, bool accumulate) {
  Product(&pool, {m, w.n(), w.k(), x, ldx, false, nullptr, 0, true, y, ldy, accumulate, bias}, &w).run();
}

}  // namespace gigpo::cpu
