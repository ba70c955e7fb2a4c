// The CPU device, in fp32 or bf16: spreads each operation over the threads. Where threads add into one place, the parts have a
// fixed size and are summed in a fixed order, so that results do not depend on the number of threads. Products and the paged cache
// have kernels for bf16; all else is computed in fp32, through FloatRows.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "core/bf16.h"
#include "core/cpu/aligned_memory.h"
#include "core/cpu/float_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/kernels_bf16.h"
#include "core/cpu/matmul.h"
#include "core/cpu/matmul_bf16.h"
#include "core/device.h"
#include "core/error.h"
#include "core/kernels/moments.h"
#include "core/process_limits.h"

namespace gigpo {
namespace {

using cpu::Access;
using cpu::AlignedFloats;
using cpu::FloatRows;
using cpu::MatmulArguments;
using cpu::PackedWeight;
using cpu::ThreadPool;

constexpr int64_t rows_in_part = 128;      // of a sum over rows
constexpr int64_t floats_in_part = 65536;  // of a sum over a flat buffer
constexpr int64_t query_block = 64;        // queries whose scores are held at a time
constexpr int64_t key_group = 64;          // keys that are looked at, or left out, together
constexpr int64_t rows_in_block = 4;       // whose floats stay in the cache
constexpr int64_t few_rows = 256;          // up to so many, a weight is worth keeping packed

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, Type precision)
      : precision_(precision), pool_(threads > 0 ? threads : usable_cpus()) {}

  DeviceTraits traits() const override { return cpu_traits(precision_); }

  void* allocate(size_t bytes) override {
    void* data = cpu::allocate_aligned(bytes);
    if (!data) throw Error("OUT_OF_MEMORY", "No room for " + std::to_string(bytes >> 20) + " MiB: take a smaller model, batch or cache.");
    return data;
  }
  void release(void* data) override { std::free(data); }
  void upload(void* device, const void* host, size_t bytes) override { std::memcpy(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
  void upload_floats(Tensor to, const std::byte* host, Stored type) override {
    pool_.parallel_for((to.columns + floats_in_part - 1) / floats_in_part, [&](int64_t part) {
      const int64_t at = part * floats_in_part;
      to_floats(host + at * bytes_of(type), type, std::min(floats_in_part, to.columns - at), to.floats() + at);
    });
  }
  void zero(void* data, size_t bytes) override { std::memset(data, 0, bytes); }

  void copy(Tensor from, Tensor to) override {
    each_row_range(from.rows, [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; r++) copy_row(from.row_range(r, 1), to.row_range(r, 1));
    });
  }

  size_t available() const override { return size_t(available_memory()); }

  void matmul(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate) override {
    if (a.type == Type::bf16) return cpu::matmul(pool_, cpu::Bf16Matmul{a, ta, b, tb, c, accumulate, {}});
    const int64_t k = ta ? a.rows : a.columns;
    cpu::matmul(pool_, {c.rows, c.columns, k, a.floats(), a.stride, ta, b.floats(), b.stride, tb, c.floats(), c.stride,
                        accumulate, nullptr});
  }

  void linear(Tensor x, Tensor weight, Tensor bias, Tensor added, Tensor y) override {
    const bool accumulate = bool(added);
    if (accumulate && added.data != y.data) copy(added, y);
    const bool half = x.type == Type::bf16;
    const cpu::Bf16Matmul product{x, false, weight, true, y, accumulate, bias};  // where it is half
    if (x.rows > few_rows || (half && !cpu::can_pack(weight))) {
      if (half) return cpu::matmul(pool_, product);
      cpu::matmul(pool_, {y.rows, y.columns, x.columns, x.floats(), x.stride, false, weight.floats(), weight.stride,
                          true, y.floats(), y.stride, accumulate, bias.floats()});
      return;
    }
    Packed& packed = packed_[weight.data];
    if (!packed.fresh || packed.weight.n() != weight.rows) {
      if (half) cpu::pack(pool_, weight, packed.weight);
      else packed.weight.pack(pool_, weight.floats(), weight.rows, weight.columns);
      packed.fresh = true;
      packed.bytes = size_t(weight.rows * weight.columns * bytes_of(weight.type));
    }
    if (half) return cpu::matmul_packed(pool_, product, packed.weight);
    cpu::matmul_packed(pool_, x.rows, x.floats(), x.stride, packed.weight, y.floats(), y.stride, bias.floats(),
                       accumulate);
  }

  void scale(Tensor x, float factor) override {
    each_row_block(x.rows, [&](int64_t first, int64_t count) {
      const FloatRows rows(x, first, count, Access::both);
      for (int64_t r = 0; r < count; r++) {
        for (int64_t column = 0; column < x.columns; column++) rows.data[r * rows.stride + column] *= factor;
      }
    });
  }

  void weights_changed(Tensor written) override {
    const auto* begin = static_cast<const std::byte*>(written.data);
    const auto* end = begin + written.columns * bytes_of(written.type);
    for (auto& [data, packed] : packed_) {
      const auto* weight = static_cast<const std::byte*>(data);
      if (weight < end && weight + packed.bytes > begin) packed.fresh = false;
    }
  }

  void bias_backward(Tensor d_y, Tensor d_bias) override {
    sum_parts(d_y.rows, d_y.columns, d_bias.floats(), [&](int64_t first, int64_t count, float* part) {
      const FloatRows d(d_y, first, count, Access::read);
      for (int64_t r = 0; r < count; r++) elementwise_.add(d_y.columns, d.data + r * d.stride, part);
    });
  }

  void gather(const int32_t* indices, Tensor from, Tensor to) override {
    for (int64_t i = 0; i < to.rows; i++) copy_row(from.row_range(indices[i], 1), to.row_range(i, 1));
  }

  void scatter_add(const RowScatter& sums, Tensor from, Tensor to) override {
    each_row_block(sums.count, [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; i++) {
        const FloatRows total(to, sums.targets[i], 1, Access::both);
        for (int64_t j = sums.offsets[i]; j < sums.offsets[i + 1]; j++) {
          elementwise_.add(from.columns, FloatRows(from, sums.sources[j], 1, Access::read).data, total.data);
        }
      }
    });
  }

  void rms_norm(Tensor x, Tensor weight, int64_t groups, float epsilon, Tensor out, float* scales) override {
    const FloatRows w(weight, 0, 1, Access::read);
    each_row_block(x.rows, [&](int64_t first, int64_t count) {
      const FloatRows from(x, first, count, Access::read), to(out, first, count, Access::write);
      elementwise_.rms_norm(count, groups, x.columns / groups, from.data, from.stride, w.data, epsilon, to.data, to.stride,
                            scales ? scales + first * groups : nullptr);
    });
  }

  void rms_norm_backward(Tensor d_out, Tensor x, Tensor weight, int64_t groups, const float* scales, Tensor d_x,
                         bool accumulate, Tensor d_weight) override {
    const int64_t size = x.columns / groups;
    const FloatRows w(weight, 0, 1, Access::read);
    sum_parts(x.rows, size, d_weight ? d_weight.floats() : nullptr, [&](int64_t first, int64_t count, float* part) {
      const FloatRows d(d_out, first, count, Access::read), from(x, first, count, Access::read);
      const FloatRows to(d_x, first, count, accumulate ? Access::both : Access::write);
      elementwise_.rms_norm_backward(count, groups, size, d.data, d.stride, from.data, from.stride, w.data,
                                     scales + first * groups, to.data, to.stride, accumulate, part);
    });
  }

  void rotate(Tensor x, int64_t head_size, const Rotary& rotary, bool inverse) override {
    each_row_block(x.rows, [&](int64_t first, int64_t count) {
      const FloatRows rows(x, first, count, Access::both);
      elementwise_.rotate(count, x.columns / head_size, head_size, rows.data, rows.stride, rotary.positions + first,
                          rotary.cosine, rotary.sine, inverse);
    });
  }

  void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out,
                 float* log_sums) override {
    if (q.type == Type::bf16) {
      const FloatRows to(out, Access::write, pool_);
      const FloatRows queries(q, Access::read, pool_), keys(k, Access::read, pool_), values(v, Access::read, pool_);
      return attention(queries.tensor(), keys.tensor(), values.tensor(), head_size, rows, to.tensor(), log_sums);
    }
    const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size;
    // A task for each block of queries, so that one long row is work for many threads.
    struct Queries {
      int64_t tree, first, count;
    };
    std::vector<Queries> blocks;
    for (const auto& [start, end] : trees_of(rows, q.rows)) {
      for (int64_t first = start; first < end; first += query_block) blocks.push_back({start, first, std::min(query_block, end - first)});
    }
    pool_.parallel_for(int64_t(blocks.size()) * heads, [&](int64_t task) {
      const auto [tree, first, count] = blocks[task / heads];
      const int64_t h = task % heads, kv = h * kv_heads / heads;
      thread_local KeyBlocks keys;
      keys.find(rows.ends, tree, first, count);
      const Tensor queries = head(q, first, count, h, head_size), result = head(out, first, count, h, head_size);
      const Tensor scores = scratch_of(query_block, keys.seen.columns, 1).matrix(0, count, keys.seen.columns);
      for (const KeyBlock& block : keys.blocks) {
        single(queries, false, head(k, block.first, block.count, kv, head_size), true, block.of(scores), false);
      }
      attention_.softmax(count, keys.seen, scores.floats(), scores.stride, scale_of(head_size), log_sums + first * heads + h, heads);
      for (const KeyBlock& block : keys.blocks) {
        single(block.of(scores), false, head(v, block.first, block.count, kv, head_size), false, result, block.column > 0);
      }
    });
  }

  void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                          int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) override {
    if (q.type == Type::bf16) {
      const FloatRows d(d_out, Access::read, pool_), result(out, Access::read, pool_);
      const FloatRows queries(q, Access::read, pool_), keys(k, Access::read, pool_), values(v, Access::read, pool_);
      const FloatRows to_q(d_q, Access::write, pool_), to_k(d_k, Access::write, pool_), to_v(d_v, Access::write, pool_);
      return attention_backward(d.tensor(), queries.tensor(), keys.tensor(), values.tensor(), result.tensor(), log_sums, head_size,
                                rows, to_q.tensor(), to_k.tensor(), to_v.tensor());
    }
    const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size, group = heads / kv_heads;
    // One task for all query heads of a key head: they add to the same keys.
    const std::vector<Tree> trees = trees_of(rows, q.rows);
    pool_.parallel_for(int64_t(trees.size()) * kv_heads, [&](int64_t task) {
      const Tree& at = trees[task / kv_heads];
      const int64_t kv = task % kv_heads;
      const Scratch scratch = scratch_of(query_block, at.end - at.start, 2);
      KeyBlocks keys;
      for (const Tensor d_keys : {d_k, d_v}) clear(head(d_keys, at.start, at.end - at.start, kv, head_size));
      for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
        // From the last block down: the other order would give other bits.
        for (int64_t first = at.start + (at.end - at.start - 1) / query_block * query_block; first >= at.start; first -= query_block) {
          const int64_t count = std::min(query_block, at.end - first);
          keys.find(rows.ends, at.start, first, count);
          const Tensor queries = head(q, first, count, h, head_size), d = head(d_out, first, count, h, head_size);
          const Tensor result = head(out, first, count, h, head_size), d_queries = head(d_q, first, count, h, head_size);
          const Tensor p = scratch.matrix(0, count, keys.seen.columns), d_scores = scratch.matrix(1, count, keys.seen.columns);
          const auto of = [&](Tensor x, const KeyBlock& block) { return head(x, block.first, block.count, kv, head_size); };
          for (const KeyBlock& block : keys.blocks) {
            single(queries, false, of(k, block), true, block.of(p), false);
            single(d, false, of(v, block), true, block.of(d_scores), false);
          }
          attention_.probabilities(count, keys.seen, p.floats(), p.stride, scale_of(head_size), log_sums + first * heads + h, heads);
          attention_.scores_backward(count, keys.seen.columns, head_size, p.floats(), d_scores.floats(), p.stride, d.floats(),
                                     d.stride, result.floats(), result.stride, scale_of(head_size));
          for (const KeyBlock& block : keys.blocks) {
            single(block.of(p), true, d, false, of(d_v, block), true);
            single(block.of(d_scores), true, queries, false, of(d_k, block), true);
            single(block.of(d_scores), false, of(k, block), false, d_queries, block.column > 0);
          }
        }
      }
    });
  }

  using Device::paged_attention;
  void paged_attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                       const PagedCache& cache, Tensor out) override {
    if (cache.keys.type == Type::f32) return paged_attention(q, k, v, head_size, batch, cache, out, attention_.paged);
    const FloatRows to(out, Access::write, pool_);
    const FloatRows queries(q, Access::read, pool_), keys(k, Access::read, pool_), values(v, Access::read, pool_);
    paged_attention(queries.tensor(), keys.tensor(), values.tensor(), head_size, batch, cache, to.tensor(), attention_.paged_bf16);
  }

  void swiglu(Tensor gate_up, Tensor out) override {
    each_row_block(out.rows, [&](int64_t first, int64_t count) {
      const FloatRows from(gate_up, first, count, Access::read), to(out, first, count, Access::write);
      elementwise_.swiglu(count, out.columns, from.data, from.stride, to.data, to.stride);
    });
  }

  void swiglu_backward(Tensor d_out, Tensor gate_up, Tensor d_gate_up) override {
    each_row_block(d_out.rows, [&](int64_t first, int64_t count) {
      const FloatRows d(d_out, first, count, Access::read), from(gate_up, first, count, Access::read);
      const FloatRows to(d_gate_up, first, count, Access::write);
      elementwise_.swiglu_backward(count, d_out.columns, d.data, d.stride, from.data, from.stride, to.data, to.stride);
    });
  }

  void policy_head(Tensor logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                   PolicyHeadResult* results) override {
    const Tensor d_logits = gradient_of_logits(logits);
    const bool rounds = options.mode != HeadMode::score && d_logits.type == Type::bf16;
    each_row_range(logits.rows, [&](int64_t first, int64_t count) {
      policy_head_chunk(count, logits.columns, logits.floats() + first * logits.stride, inputs + first, options, results + first);
      // In place: `round` has read what it writes over.
      for (int64_t r = first; rounds && r < first + count; r++) copy_row(logits.row_range(r, 1), d_logits.row_range(r, 1));
    });
  }

  void value_head(Tensor hidden, Tensor weight, const ValueHeadRow* inputs, const ValueHeadOptions& options,
                  ValueHeadResult* results, Tensor d_hidden, Tensor d_weight) override {
    const int64_t columns = hidden.columns;
    const FloatRows w(weight, 0, 1, Access::read);
    sum_parts(hidden.rows, columns, d_weight ? d_weight.floats() : nullptr, [&](int64_t first, int64_t count, float* part) {
      for (int64_t r = first; r < first + count; r++) {
        const FloatRows h(hidden, r, 1, Access::read);
        double value = 0;
        for (int64_t c = 0; c < columns; c++) value += double(h.data[c]) * double(w.data[c]);
        const float gradient = value_head_row(float(value), inputs[r], options, results + r);
        if (!options.training) continue;
        const FloatRows d(d_hidden, r, 1, Access::write);
        for (int64_t c = 0; c < columns; c++) d.data[c] = gradient * w.data[c], part[c] += gradient * h.data[c];
      }
    });
  }

  void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs) override {
    pool_.parallel_for(logits.rows, [&](int64_t r) {
      const Scratch noise = scratch_of(1, logits.columns + 64, 1);
      tokens[r] = elementwise_.sample(logits.columns, FloatRows(logits, r, 1, Access::read).data, inputs.temperatures[r],
                                      inputs.keys[r], inputs.token_indices[r], reinterpret_cast<uint32_t*>(noise.data), log_probs + r);
    });
  }

  double squared_norm(const float* x, int64_t count) override {
    const int64_t parts = (count + floats_in_part - 1) / floats_in_part;
    std::vector<double> sums(parts);
    pool_.parallel_for(parts, [&](int64_t part) {
      const int64_t first = part * floats_in_part;
      sums[part] = elementwise_.squared_norm(std::min(floats_in_part, count - first), x + first);
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
  }

  void adamw(const AdamWBuffers& b, const AdamW& step) override {
    const AdamWFactors factors(step);
    pool_.parallel_for((b.count + floats_in_part - 1) / floats_in_part, [&](int64_t part) {
      const int64_t at = part * floats_in_part, count = std::min(floats_in_part, b.count - at);
      if (b.moments == Type::bf16) {
        auto *first = static_cast<uint16_t*>(b.first_moment) + at, *second = static_cast<uint16_t*>(b.second_moment) + at;
        elementwise_.adamw_rounded(count, b.weights + at, b.gradients + at, first, second, factors, step.rounding, b.index + at);
      } else {
        auto *first = static_cast<float*>(b.first_moment) + at, *second = static_cast<float*>(b.second_moment) + at;
        elementwise_.adamw(count, b.weights + at, b.gradients + at, first, second, factors);
      }
      if (b.compute) bf16_.round(count, b.weights + at, static_cast<uint16_t*>(b.compute) + at);
    });
  }

 private:
  struct Packed {
    PackedWeight weight;
    size_t bytes = 0;  // of the weight as it came
    bool fresh = false;
  };
  // The tokens [start, end).
  struct Tree {
    int64_t start, end;
  };
  struct KeyBlock {
    int64_t first, count;  // keys of the batch
    int64_t column;        // where their scores stand
    Tensor of(Tensor scores) const { return scores.column_range(column, count); }
  };
  // What some queries of a tree have to look at: its keys before them, less the groups that none of them sees. What stands together
  // is one block, as far as a matrix product sums in one go: a row by itself has the bits of one product over all of its keys.
  struct KeyBlocks {
    std::vector<KeyBlock> blocks;
    std::vector<int32_t> ends;
    cpu::SeenKeys seen;

    void find(const int32_t* all_ends, int64_t start, int64_t first_query, int64_t count) {
      const int64_t end = first_query + count;
      int64_t column = 0;
      blocks.clear();
      ends.resize((end - start + 15) / 16 * 16);
      for (int64_t first = start; first < end; first += key_group) {
        const int64_t keys = std::min(key_group, end - first);
        if (*std::max_element(all_ends + first, all_ends + first + keys) <= first_query) continue;
        std::copy_n(all_ends + first, keys, ends.begin() + column);
        const bool goes_on = !blocks.empty() && blocks.back().first + blocks.back().count == first && (first - start) % cpu::k_block != 0;
        if (goes_on) blocks.back().count += keys;
        else blocks.push_back({first, keys, column});
        column += keys;
      }
      const int64_t open = std::find_if(ends.begin(), ends.begin() + column, [&](int32_t e) { return e < end; }) - ends.begin();
      seen = {column, open, int32_t(first_query), ends.data()};
    }
  };
  // Matrices of one thread, their rows padded to whole vectors.
  struct Scratch {
    float* data;
    int64_t rows, stride;
    Tensor matrix(int64_t index, int64_t count, int64_t columns) const {
      return {data + index * rows * stride, Type::f32, count, columns, stride};
    }
  };

  static Scratch scratch_of(int64_t rows, int64_t columns, int64_t matrices) {
    thread_local AlignedFloats storage;
    const int64_t stride = (columns + 15) / 16 * 16;
    return {storage.reserve(rows * stride * matrices), rows, stride};
  }

  void copy_row(Tensor from, Tensor to) const {
    if (from.type == to.type) std::memcpy(to.data, from.data, from.columns * bytes_of(from.type));
    else if (to.type == Type::f32) bf16_.widen(from.columns, static_cast<const uint16_t*>(from.data), to.floats());
    else bf16_.round(from.columns, from.floats(), static_cast<uint16_t*>(to.data));
  }

  static void clear(Tensor x) {
    for (int64_t r = 0; r < x.rows; r++) std::memset(x.row_range(r, 1).data, 0, x.columns * sizeof(float));
  }

  static float scale_of(int64_t head_size) { return 1 / std::sqrt(float(head_size)); }

  static Tensor head(Tensor x, int64_t first, int64_t count, int64_t index, int64_t head_size) {
    return x.row_range(first, count).column_range(index * head_size, head_size);
  }

  static void single(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate) {
    cpu::matmul_single({c.rows, c.columns, ta ? a.rows : a.columns, a.floats(), a.stride, ta, b.floats(), b.stride, tb,
                        c.floats(), c.stride, accumulate, nullptr});
  }

  int64_t rows_in_range(int64_t rows) const {
    return std::clamp<int64_t>((rows + 4 * pool_.size() - 1) / (4 * pool_.size()), 8, 64);
  }

  // body(first, count) over ranges that cover `rows`.
  template <class Body>
  void each_row_range(int64_t rows, Body body) {
    const int64_t size = rows_in_range(rows);
    pool_.parallel_for((rows + size - 1) / size, [&](int64_t part) {
      body(part * size, std::min(size, rows - part * size));
    });
  }

  // The same for FloatRows: in bf16 the ranges are cut into blocks whose floats stay in the cache.
  template <class Body>
  void each_row_block(int64_t rows, Body body) {
    each_row_range(rows, [&](int64_t first, int64_t count) {
      each_block(first, count, body);
    });
  }
  template <class Body>
  void each_block(int64_t first, int64_t count, Body body) const {
    const int64_t block = precision_ == Type::bf16 ? rows_in_block : count;
    for (int64_t r = first; r < first + count; r += block) body(r, std::min(block, first + count - r));
  }

  // Long trees first would balance better, but those of one batch are much alike.
  static std::vector<Tree> trees_of(const PackedRows& rows, int64_t tokens) {
    std::vector<Tree> trees;
    for (int64_t token = 0; token < tokens; token = rows.ends[token]) trees.push_back({token, rows.ends[token]});
    return trees;
  }

  // total[columns] (may be null) += Σ over parts of `rows_in_part` rows of what body(first, count, part) adds to its zeroed part.
  template <class Body>
  void sum_parts(int64_t rows, int64_t columns, float* total, Body body) {
    const int64_t parts = (rows + rows_in_part - 1) / rows_in_part;
    float* sums = parts_.reserve(parts * columns);
    pool_.parallel_for(parts, [&](int64_t part) {
      float* sum = sums + part * columns;
      std::memset(sum, 0, columns * sizeof(float));
      each_block(part * rows_in_part, std::min(rows_in_part, rows - part * rows_in_part),
                 [&](int64_t first, int64_t count) { body(first, count, sum); });
    });
    for (int64_t part = 0; total && part < parts; part++) elementwise_.add(columns, sums + part * columns, total);
  }

  // T: what the cache holds. The others are f32.
  template <class T>
  void paged_attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch, const PagedCache& cache, Tensor out,
                       const cpu::PagedKernels<T>& kernels) {
    constexpr int64_t page = PagedCache::page_size;
    const int64_t kv_heads = k.columns / head_size, group = q.columns / k.columns, head_floats = head_size * page;
    T *const all_keys = static_cast<T*>(cache.keys.data), *const all_values = static_cast<T*>(cache.values.data);
    const auto pages_of = [&](int64_t t) { return batch.page_tables + batch.sequences[t] * batch.table_stride; };
    each_row_range(q.rows, [&](int64_t first, int64_t count) {
      for (int64_t t = first; t < first + count; t++) {
        const int64_t position = batch.positions[t], at = pages_of(t)[position / page] * cache.keys.stride;
        for (int64_t h = 0; h < kv_heads; h++) {
          kernels.store(head_size, position % page, k.floats() + t * k.stride + h * head_size,
                        v.floats() + t * v.stride + h * head_size, all_keys + at + h * head_floats, all_values + at + h * head_floats);
        }
      }
    });
    // A task for each key head, since a batch of few rows would be work for one thread.
    const int64_t size = rows_in_range(q.rows), ranges = (q.rows + size - 1) / size;
    pool_.parallel_for(ranges * kv_heads, [&](int64_t task) {
      const int64_t first = task / kv_heads * size, count = std::min(size, q.rows - first), h = task % kv_heads;
      thread_local std::vector<cpu::PagedQuery> queries;
      for (int64_t t = first, next; t < first + count; t = next) {
        for (next = t + 1; next < first + count && batch.sequences[next] == batch.sequences[t];) next++;
        const Scratch scratch = scratch_of(kernels.rows, batch.positions[next - 1] + 1, 1);
        queries.clear();
        for (int64_t i = t; i < next; i++) {
          for (int64_t column = h * group * head_size; column < (h + 1) * group * head_size; column += head_size) {
            queries.push_back({q.floats() + i * q.stride + column, out.floats() + i * out.stride + column,
                               batch.positions[i] + 1});
          }
        }
        kernels.attend(int64_t(queries.size()), queries.data(), head_size, pages_of(t), all_keys + h * head_floats,
                       all_values + h * head_floats, cache.keys.stride, scale_of(head_size), scratch.data);
      }
    });
  }

  const Type precision_;
  ThreadPool pool_;
  const cpu::ElementwiseKernels& elementwise_ = cpu::elementwise_kernels(cpu::isa());
  const cpu::AttentionKernels& attention_ = cpu::attention_kernels(cpu::isa());
  const cpu::Bf16Kernels& bf16_ = cpu::bf16_kernels(cpu::isa());
  AlignedFloats parts_;
  std::unordered_map<const void*, Packed> packed_;
};

}  // namespace

static_assert(DeviceTraits::head_unit == cpu::k_block);

// A chunk of logits should stay in the cache, where the vocabulary is small enough.
DeviceTraits cpu_traits(Type precision) {
  const auto of_floats = [](int64_t rows, int64_t columns) { return cpu::packed_size(rows, columns) * int64_t{sizeof(float)}; };
  const auto of_pairs = [](int64_t rows, int64_t columns) {
    return columns % 2 == 0 ? cpu::packed_size(rows, columns / 2) * int64_t{sizeof(uint32_t)} : 0;
  };
  return {precision, int64_t{1} << 20, 1024, 64, false, false, precision == Type::f32 ? +of_floats : +of_pairs};
}

std::unique_ptr<Device> make_cpu_device(int threads, Type precision) { return std::make_unique<CpuDevice>(threads, precision); }

}  // namespace gigpo
