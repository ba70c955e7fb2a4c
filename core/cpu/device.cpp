// The CPU device, in fp32: spreads each operation over the threads. Where threads add into one place, the parts have a
// fixed size and are summed in a fixed order, so that results do not depend on the number of threads.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "core/bf16.h"
#include "core/cpu/kernels.h"
#include "core/cpu/matmul.h"
#include "core/device.h"
#include "core/error.h"
#include "core/kernels/moments.h"

namespace gigpo {
namespace {

using cpu::AlignedFloats;
using cpu::MatmulArguments;
using cpu::PackedWeight;
using cpu::ThreadPool;

constexpr int64_t rows_in_part = 128;      // of a sum over rows
constexpr int64_t floats_in_part = 65536;  // of a sum over a flat buffer
constexpr int64_t query_block = 64;        // queries whose scores are held at a time
constexpr int64_t key_group = 64;          // keys that are looked at, or left out, together
constexpr int64_t few_rows = 256;          // up to so many, a weight is worth keeping packed

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : pool_(threads > 0 ? threads : int(std::thread::hardware_concurrency())) {}

  DeviceTraits traits() const override { return cpu_traits(); }

  void* allocate(size_t bytes) override {
    constexpr size_t alignment = 64, huge_page = size_t{1} << 21;
    const bool large = bytes >= 2 * huge_page;
    const size_t unit = large ? huge_page : alignment;
    void* data = std::aligned_alloc(unit, (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit);
    if (!data) throw Error("OUT_OF_MEMORY", "No room for " + std::to_string(bytes >> 20) + " MiB: take a smaller model, batch or cache.");
    if (large) madvise(data, bytes, MADV_HUGEPAGE);  // fewer page faults and address translations; a hint only
    return data;
  }
  void release(void* data) override { std::free(data); }
  void upload(void* device, const void* host, size_t bytes) override { std::memcpy(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
  void zero(void* data, size_t bytes) override { std::memset(data, 0, bytes); }

  void copy(Tensor from, Tensor to) override {
    each_row_range(from.rows, [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; r++) copy_row(from.row_range(r, 1), to.row_range(r, 1));
    });
  }

  size_t available() const override { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

  void matmul(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate) override {
    const int64_t k = ta ? a.rows : a.columns;
    cpu::matmul(pool_, {c.rows, c.columns, k, a.floats(), a.stride, ta, b.floats(), b.stride, tb, c.floats(), c.stride,
                        accumulate, nullptr});
  }

  void linear(Tensor x, Tensor weight, Tensor bias, Tensor added, Tensor y) override {
    const bool accumulate = bool(added);
    if (accumulate && added.data != y.data) copy(added, y);
    if (x.rows > few_rows) {
      cpu::matmul(pool_, {y.rows, y.columns, x.columns, x.floats(), x.stride, false, weight.floats(), weight.stride,
                          true, y.floats(), y.stride, accumulate, bias.floats()});
      return;
    }
    Packed& packed = packed_[weight.data];
    if (packed.version != version_ || packed.weight.n() != weight.rows) {
      packed.weight.pack(pool_, weight.floats(), weight.rows, weight.columns);
      packed.version = version_;
    }
    cpu::matmul_packed(pool_, x.rows, x.floats(), x.stride, packed.weight, y.floats(), y.stride, bias.floats(),
                       accumulate);
  }

  void scale(Tensor x, float factor) override {
    each_row_range(x.rows, [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; r++) {
        for (int64_t column = 0; column < x.columns; column++) x.floats()[r * x.stride + column] *= factor;
      }
    });
  }

  void weights_changed() override { version_++; }

  void bias_backward(Tensor d_y, Tensor d_bias) override {
    sum_parts(d_y.rows, d_y.columns, d_bias.floats(), [&](int64_t first, int64_t count, float* part) {
      for (int64_t r = first; r < first + count; r++) elementwise_.add(d_y.columns, d_y.floats() + r * d_y.stride, part);
    });
  }

  void gather(const int32_t* indices, Tensor from, Tensor to) override {
    for (int64_t i = 0; i < to.rows; i++) {
      std::memcpy(to.floats() + i * to.stride, from.floats() + indices[i] * from.stride, to.columns * sizeof(float));
    }
  }

  void scatter_add(const RowScatter& sums, Tensor from, Tensor to) override {
    each_row_range(sums.count, [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; i++) {
        float* total = to.floats() + sums.targets[i] * to.stride;
        for (int64_t j = sums.offsets[i]; j < sums.offsets[i + 1]; j++) {
          elementwise_.add(from.columns, from.floats() + sums.sources[j] * from.stride, total);
        }
      }
    });
  }

  void rms_norm(Tensor x, Tensor weight, int64_t groups, float epsilon, Tensor out, float* scales) override {
    each_row_range(x.rows, [&](int64_t first, int64_t count) {
      elementwise_.rms_norm(count, groups, x.columns / groups, x.floats() + first * x.stride, x.stride, weight.floats(),
                            epsilon, out.floats() + first * out.stride, out.stride,
                            scales ? scales + first * groups : nullptr);
    });
  }

  void rms_norm_backward(Tensor d_out, Tensor x, Tensor weight, int64_t groups, const float* scales, Tensor d_x,
                         bool accumulate, Tensor d_weight) override {
    const int64_t size = x.columns / groups;
    sum_parts(x.rows, size, d_weight ? d_weight.floats() : nullptr, [&](int64_t first, int64_t count, float* part) {
      elementwise_.rms_norm_backward(count, groups, size, d_out.floats() + first * d_out.stride, d_out.stride,
                                     x.floats() + first * x.stride, x.stride, weight.floats(), scales + first * groups,
                                     d_x.floats() + first * d_x.stride, d_x.stride, accumulate, part);
    });
  }

  void rotate(Tensor x, int64_t head_size, const Rotary& rotary, bool inverse) override {
    each_row_range(x.rows, [&](int64_t first, int64_t count) {
      elementwise_.rotate(count, x.columns / head_size, head_size, x.floats() + first * x.stride, x.stride,
                          rotary.positions + first, rotary.cosine, rotary.sine, inverse);
    });
  }

  void attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PackedRows& rows, Tensor out,
                 float* log_sums) override {
    const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size;
    each_head(rows, q.rows, heads, [&](const Head& at) {
      const Scratch scratch = scratch_of(query_block, at.end - at.start, 1);
      const int64_t kv = at.head * kv_heads / heads;
      KeyBlocks keys;
      for (int64_t first = at.start; first < at.end; first += query_block) {
        const int64_t count = std::min(query_block, at.end - first);
        keys.find(rows.ends, at.start, first, count);
        const Tensor queries = head(q, first, count, at.head, head_size), result = head(out, first, count, at.head, head_size);
        const Tensor scores = scratch.matrix(0, count, keys.seen.columns);
        for (const KeyBlock& block : keys.blocks) {
          single(queries, false, head(k, block.first, block.count, kv, head_size), true, block.of(scores), false);
        }
        attention_.softmax(count, keys.seen, scores.floats(), scores.stride, scale_of(head_size),
                           log_sums + first * heads + at.head, heads);
        for (const KeyBlock& block : keys.blocks) {
          single(block.of(scores), false, head(v, block.first, block.count, kv, head_size), false, result, block.column > 0);
        }
      }
    });
  }

  void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                          int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) override {
    const int64_t heads = q.columns / head_size, kv_heads = k.columns / head_size, group = heads / kv_heads;
    // One task for all query heads of a key head: they add to the same keys.
    each_head(rows, q.rows, kv_heads, [&](const Head& at) {
      const Scratch scratch = scratch_of(query_block, at.end - at.start, 2);
      KeyBlocks keys;
      for (const Tensor d_keys : {d_k, d_v}) clear(head(d_keys, at.start, at.end - at.start, at.head, head_size));
      for (int64_t h = at.head * group; h < (at.head + 1) * group; h++) {
        // From the last block down: the other order would give other bits.
        for (int64_t first = at.start + (at.end - at.start - 1) / query_block * query_block; first >= at.start; first -= query_block) {
          const int64_t count = std::min(query_block, at.end - first);
          keys.find(rows.ends, at.start, first, count);
          const Tensor queries = head(q, first, count, h, head_size), d = head(d_out, first, count, h, head_size);
          const Tensor result = head(out, first, count, h, head_size), d_queries = head(d_q, first, count, h, head_size);
          const Tensor p = scratch.matrix(0, count, keys.seen.columns), d_scores = scratch.matrix(1, count, keys.seen.columns);
          const auto of = [&](Tensor x, const KeyBlock& block) { return head(x, block.first, block.count, at.head, head_size); };
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

  void paged_attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                       const PagedCache& cache, Tensor out) override {
    constexpr int64_t page = PagedCache::page_size;
    const int64_t kv_heads = k.columns / head_size, group = q.columns / k.columns, head_floats = head_size * page;
    const auto pages_of = [&](int64_t t) { return batch.page_tables + batch.sequences[t] * batch.table_stride; };
    each_row_range(q.rows, [&](int64_t first, int64_t count) {
      for (int64_t t = first; t < first + count; t++) {
        const int64_t position = batch.positions[t], at = pages_of(t)[position / page] * cache.keys.stride;
        for (int64_t h = 0; h < kv_heads; h++) {
          attention_.store_page(head_size, position % page, k.floats() + t * k.stride + h * head_size,
                                v.floats() + t * v.stride + h * head_size, cache.keys.floats() + at + h * head_floats,
                                cache.values.floats() + at + h * head_floats);
        }
      }
    });
    each_row_range(q.rows, [&](int64_t first, int64_t count) {
      std::vector<cpu::PagedQuery> queries;
      for (int64_t t = first, next; t < first + count; t = next) {
        for (next = t + 1; next < first + count && batch.sequences[next] == batch.sequences[t];) next++;
        const Scratch scratch = scratch_of(cpu::AttentionKernels::paged_rows, batch.positions[next - 1] + 1, 1);
        for (int64_t h = 0; h < kv_heads; h++) {
          queries.clear();
          for (int64_t i = t; i < next; i++) {
            for (int64_t column = h * group * head_size; column < (h + 1) * group * head_size; column += head_size) {
              queries.push_back({q.floats() + i * q.stride + column, out.floats() + i * out.stride + column,
                                 batch.positions[i] + 1});
            }
          }
          attention_.paged(int64_t(queries.size()), queries.data(), head_size, pages_of(t),
                           cache.keys.floats() + h * head_floats, cache.values.floats() + h * head_floats,
                           cache.keys.stride, scale_of(head_size), scratch.data);
        }
      }
    });
  }

  void swiglu(Tensor gate_up, Tensor out) override {
    each_row_range(out.rows, [&](int64_t first, int64_t count) {
      elementwise_.swiglu(count, out.columns, gate_up.floats() + first * gate_up.stride, gate_up.stride,
                          out.floats() + first * out.stride, out.stride);
    });
  }

  void swiglu_backward(Tensor d_out, Tensor gate_up, Tensor d_gate_up) override {
    each_row_range(d_out.rows, [&](int64_t first, int64_t count) {
      elementwise_.swiglu_backward(count, d_out.columns, d_out.floats() + first * d_out.stride, d_out.stride,
                                   gate_up.floats() + first * gate_up.stride, gate_up.stride,
                                   d_gate_up.floats() + first * d_gate_up.stride, d_gate_up.stride);
    });
  }

  void policy_head(Tensor logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                   PolicyHeadResult* results) override {
    each_row_range(logits.rows, [&](int64_t first, int64_t count) {
      policy_head_chunk(count, logits.columns, logits.floats() + first * logits.stride, inputs + first, options,
                        results + first);
    });
  }

  void value_head(Tensor hidden, Tensor weight, const ValueHeadRow* inputs, const ValueHeadOptions& options,
                  ValueHeadResult* results, Tensor d_hidden, Tensor d_weight) override {
    const int64_t columns = hidden.columns;
    const float* w = weight.floats();
    sum_parts(hidden.rows, columns, d_weight ? d_weight.floats() : nullptr, [&](int64_t first, int64_t count, float* part) {
      for (int64_t r = first; r < first + count; r++) {
        const float* h = hidden.floats() + r * hidden.stride;
        double value = 0;
        for (int64_t c = 0; c < columns; c++) value += double(h[c]) * double(w[c]);
        const float gradient = value_head_row(float(value), inputs[r], options, results + r);
        if (!options.training) continue;
        float* d = d_hidden.floats() + r * d_hidden.stride;
        for (int64_t c = 0; c < columns; c++) d[c] = gradient * w[c], part[c] += gradient * h[c];
      }
    });
  }

  void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs) override {
    pool_.parallel_for(logits.rows, [&](int64_t r) {
      const Scratch noise = scratch_of(1, logits.columns + 64, 1);
      tokens[r] = elementwise_.sample(logits.columns, logits.floats() + r * logits.stride, inputs.temperatures[r],
                                      inputs.keys[r], inputs.token_indices[r], noise.data, log_probs + r);
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

  void adamw(const AdamWBuffers& buffers, const AdamW& s) override {
    pool_.parallel_for((buffers.count + floats_in_part - 1) / floats_in_part, [&](int64_t part) {
      const int64_t at = part * floats_in_part, count = std::min(floats_in_part, buffers.count - at);
      if (buffers.moments == Type::bf16) return adamw_rounded(buffers, s, at, count);
      float *first = static_cast<float*>(buffers.first_moment) + at, *second = static_cast<float*>(buffers.second_moment) + at;
      elementwise_.adamw(count, buffers.weights + at, buffers.gradients + at, first, second, s.learning_rate, s.beta1, s.beta2,
                         s.epsilon, s.weight_decay, s.gradient_scale, s.correction1, s.correction2);
    });
  }

 private:
  struct Packed {
    PackedWeight weight;
    uint64_t version = 0;
  };
  // One head of one tree, whose tokens are [start, end).
  struct Head {
    int64_t start, end, head;
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

  static void copy_row(Tensor from, Tensor to) {
    if (from.type == to.type) {
      std::memcpy(to.data, from.data, from.columns * bytes_of(from.type));
    } else if (to.type == Type::f32) {
      for (int64_t i = 0; i < from.columns; i++) to.floats()[i] = from_bf16(static_cast<const uint16_t*>(from.data)[i]);
    } else {
      for (int64_t i = 0; i < from.columns; i++) static_cast<uint16_t*>(to.data)[i] = to_bf16(from.floats()[i]);
    }
  }

  static void adamw_rounded(const AdamWBuffers& b, const AdamW& step, int64_t at, int64_t count) {
    auto *first = static_cast<uint16_t*>(b.first_moment), *second = static_cast<uint16_t*>(b.second_moment);
    const AdamWFactors factors(step);
    Philox noise{};
    for (int64_t i = at; i < at + count; i++) {
      const int64_t index = b.index + i;
      if (i == at || index % 4 == 0) noise = moment_noise(step.rounding, index / 4);
      const uint32_t word = noise.word[index % 4];
      const AdamWElement next = adamw_element({b.weights[i], from_bf16(first[i]), from_bf16(second[i])}, b.gradients[i], factors);
      b.weights[i] = next.weight;
      first[i] = round_to_bf16(next.first, word & 0xFFFF);
      second[i] = round_to_bf16(next.second, word >> 16);
    }
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

  // body(first, count) over ranges that cover `rows`.
  template <class Body>
  void each_row_range(int64_t rows, Body body) {
    const int64_t size = std::clamp<int64_t>((rows + 4 * pool_.size() - 1) / (4 * pool_.size()), 8, 64);
    pool_.parallel_for((rows + size - 1) / size, [&](int64_t part) {
      body(part * size, std::min(size, rows - part * size));
    });
  }

  // Long trees first would balance better, but those of one batch are much alike.
  template <class Body>
  void each_head(const PackedRows& rows, int64_t tokens, int64_t heads, Body body) {
    std::vector<int64_t> trees;
    for (int64_t token = 0; token < tokens; token = rows.ends[token]) trees.push_back(token);
    pool_.parallel_for(int64_t(trees.size()) * heads, [&](int64_t task) {
      const int64_t start = trees[task / heads];
      body(Head{start, rows.ends[start], task % heads});
    });
  }

  // total[columns] (may be null) += Σ over parts of `rows_in_part` rows of what body(first, count, part) adds to its zeroed part.
  template <class Body>
  void sum_parts(int64_t rows, int64_t columns, float* total, Body body) {
    const int64_t parts = (rows + rows_in_part - 1) / rows_in_part;
    float* sums = parts_.reserve(parts * columns);
    pool_.parallel_for(parts, [&](int64_t part) {
      float* sum = sums + part * columns;
      std::memset(sum, 0, columns * sizeof(float));
      body(part * rows_in_part, std::min(rows_in_part, rows - part * rows_in_part), sum);
    });
    for (int64_t part = 0; total && part < parts; part++) elementwise_.add(columns, sums + part * columns, total);
  }

  ThreadPool pool_;
  const cpu::ElementwiseKernels& elementwise_ = cpu::elementwise_kernels(cpu::isa());
  const cpu::AttentionKernels& attention_ = cpu::attention_kernels(cpu::isa());
  AlignedFloats parts_;
  std::unordered_map<const void*, Packed> packed_;
  uint64_t version_ = 1;
};

}  // namespace

// A chunk of logits should stay in the cache.
DeviceTraits cpu_traits() { return {Type::f32, int64_t{1} << 20, 1024, false}; }

std::unique_ptr<Device> make_cpu_device(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace gigpo
