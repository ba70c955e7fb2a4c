// How a matrix multiply is cut into the kernel's tiles (after Goto & van de Geijn, "Anatomy of high-performance matrix
// multiplication", ACM TOMS 2008). B is cut into panels as wide as a tile and packed by all threads, a group of panels
// and of k at a time. Then each thread takes parts of the rows of A, packs them tile by tile into its own cache, and
// multiplies them with the panels.
#include "core/cpu/matmul.h"

#include <algorithm>
#include <new>

#include "core/cpu/matmul_kernel.h"

namespace gigpo::cpu {
namespace {

constexpr int64_t k_block = 256;  // part of the definition of the result: see matmul.h
#ifndef KG
#define KG 4
#endif
#ifndef RB
#define RB 112
#endif
constexpr int64_t k_group = KG * k_block;     // at most this much of k is packed at a time,
constexpr int64_t b_group_floats = 1 << 20;   // and this much of B,
constexpr int64_t row_block = RB;             // and these rows of A by a thread: with k_block, an eighth of its L2
constexpr int64_t small_work = 32 * 32 * 32;  // multiply-adds that take less time than a second thread to join

thread_local AlignedFloats a_buffer, b_buffer;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// [begin, end): the i-th of `parts` nearly equal parts of [0, total).
struct Range {
  Range(int64_t total, int64_t parts, int64_t i) : begin(total * i / parts), end(total * (i + 1) / parts) {}
  int64_t size() const { return end - begin; }
  int64_t begin, end;
};

template <class F>
void for_each(ThreadPool* pool, int64_t count, F&& body) {
  if (pool) return pool->parallel_for(count, body);
  for (int64_t i = 0; i < count; i++) body(i);
}

// pool: null for the calling thread only. packed_weight: all of B as PackedWeight keeps it, or null.
void multiply(ThreadPool* pool, const MatmulArguments& x, const float* packed_weight) {
  if (x.m <= 0 || x.n <= 0) return;
  if (x.m * x.n * x.k <= small_work) pool = nullptr;
  const MatmulKernel& kernel = matmul_kernel(isa());
  const int64_t threads = pool ? pool->size() : 1, width = kernel.columns;
  const int64_t tiles = ceil_div(x.m, kernel.rows), panels = ceil_div(x.n, width);
  const auto rows = [&](int64_t tile) { return Range(x.m, tiles, tile); };
  const auto columns = [&](int64_t panel) { return std::min(width, x.n - panel * width); };

  // Parts of the result: row parts while there are enough for all threads, else column parts too, and then the tiles
  // of A are packed once for all.
  const int64_t row_parts = std::min(tiles, ceil_div(ceil_div(x.m, row_block), threads) * threads);
  const int64_t column_parts = row_parts >= threads ? 1 : std::min(panels, ceil_div(4 * threads, row_parts));
  const bool share_a = column_parts > 1;

  // What a tile would read as it lies is not packed where it is read only once or twice.
  const auto in_place_a = [&](int64_t tile) { return x.ta ? panels <= 2 : rows(tile).size() == 1; };
  const auto in_place_b = [&](int64_t panel) { return !x.tb && tiles <= 2 && columns(panel) % kernel.lanes == 0; };
  const auto pack_a = [&](float* packed, int64_t tile, int64_t k0, int64_t depth) {
    if (in_place_a(tile)) return;
    const auto [row, end] = rows(tile);
    kernel.pack(packed, end - row, x.a + (x.ta ? k0 * x.lda + row : row * x.lda + k0), x.lda, !x.ta, end - row, depth);
  };

  const int64_t group_depth = std::max<int64_t>(1, packed_weight ? x.k : std::min(x.k, k_group));
  const int64_t group_panels =
      packed_weight ? panels : std::clamp<int64_t>(b_group_floats / width / group_depth, 1, panels);
  const int64_t a_depth = share_a ? group_depth : std::min(x.k, k_block), a_stride = kernel.rows * a_depth + kernel.lanes;

  for (int64_t first_panel = 0; first_panel < panels; first_panel += group_panels)
    for (int64_t k0 = 0; k0 == 0 || k0 < x.k; k0 += group_depth) {
      const int64_t panel_count = std::min(group_panels, panels - first_panel), depth = std::min(group_depth, x.k - k0);
      const float* b_packed = packed_weight;
      if (!packed_weight) {
        float* const packed = b_buffer.reserve(size_t(panel_count * width * depth));
        for_each(pool, panel_count, [&](int64_t i) {
          const int64_t panel = first_panel + i, column = panel * width;
          if (in_place_b(panel)) return;
          kernel.pack(packed + i * width * depth, width, x.b + (x.tb ? column * x.ldb + k0 : k0 * x.ldb + column), x.ldb,
                      x.tb, columns(panel), depth);
        });
        b_packed = packed;
      }
      float* a_shared = nullptr;
      if (share_a) {
        a_shared = a_buffer.reserve(size_t(tiles * a_stride));
        for_each(pool, tiles, [&](int64_t tile) { pack_a(a_shared + tile * a_stride, tile, k0, depth); });
      }
      for_each(pool, row_parts * column_parts, [&](int64_t task) {
        const Range my_tiles(tiles, row_parts, task / column_parts);
        const Range my_panels(panel_count, column_parts, task % column_parts);
        for (int64_t p = 0; p == 0 || p < depth; p += k_block) {
          const int64_t block = std::min(k_block, depth - p), at = k0 + p;
          float* a_packed = share_a ? a_shared + my_tiles.begin * a_stride : a_buffer.reserve(size_t(my_tiles.size() * a_stride));
          if (!share_a)
            for (int64_t tile = my_tiles.begin; tile < my_tiles.end; tile++)
              pack_a(a_packed + (tile - my_tiles.begin) * a_stride, tile, at, block);
          for (int64_t i = my_panels.begin; i < my_panels.end; i++) {
            const int64_t panel = first_panel + i, column = panel * width;
            const bool b_lies = !packed_weight && in_place_b(panel);
            const float* b = b_lies ? x.b + at * x.ldb + column : b_packed + (i * depth + p) * width;
            const int64_t b_step = b_lies ? x.ldb : width;
            for (int64_t tile = my_tiles.begin; tile < my_tiles.end; tile++) {
              const auto [row, end] = rows(tile);
              const float* a = a_packed + (tile - my_tiles.begin) * a_stride + (share_a ? p * (end - row) : 0);
              int64_t a_step = end - row;
              if (in_place_a(tile)) {
                a = x.a + (x.ta ? at * x.lda + row : row * x.lda + at);
                a_step = x.ta ? x.lda : 1;
              }
              kernel.tile[end - row - 1](block, a, a_step, b, b_step, x.c + row * x.ldc + column, x.ldc, columns(panel),
                                         x.accumulate || at > 0, at > 0 || !x.bias ? nullptr : x.bias + column);
            }
          }
        }
      });
    }
}

}  // namespace

void matmul(ThreadPool& pool, const MatmulArguments& arguments) { multiply(&pool, arguments, nullptr); }

void matmul_single(const MatmulArguments& arguments) { multiply(nullptr, arguments, nullptr); }

float* AlignedFloats::reserve(size_t count) {
  if (count > capacity_) {
    data_.reset();  // first, so that old and new are never there at once
    capacity_ = 0;
    data_.reset(static_cast<float*>(::operator new(count * sizeof(float), std::align_val_t{64})));
    capacity_ = count;
  }
  return data_.get();
}

void AlignedFloats::Free::operator()(float* data) const { ::operator delete(data, std::align_val_t{64}); }

void PackedWeight::pack(ThreadPool& pool, const float* w, int64_t n, int64_t k) {
  const MatmulKernel& kernel = matmul_kernel(isa());
  const int64_t width = kernel.columns, panels = ceil_div(n, width);
  float* const packed = storage_.reserve(size_t(panels * width * k));
  pool.parallel_for(panels, [&](int64_t panel) {
    kernel.pack(packed + panel * width * k, width, w + panel * width * k, k, true, std::min(width, n - panel * width), k);
  });
  n_ = n, k_ = k;
}

void matmul_packed(ThreadPool& pool, int64_t m, const float* x, int64_t ldx, const PackedWeight& w, float* y,
                   int64_t ldy, const float* bias, bool accumulate) {
  multiply(&pool, {m, w.n(), w.k(), x, ldx, false, nullptr, w.k(), true, y, ldy, accumulate, bias}, w.data());
}

}  // namespace gigpo::cpu
