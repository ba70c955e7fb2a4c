// CPU device in fp32 or bf16, with each operation distributed over the threads. Sums over threads have parts of fixed size and a fixed
// order, so that results do not depend on the number of threads. Matrix products and the paged KV cache have bf16 kernels; everything else
// is computed in fp32, through FloatRows.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "core/bf16.h"
#include "core/cpu/aligned_memory.h"
#include "core/cpu/attention.h"
#include "core/cpu/attention_parts.h"
#include "core/cpu/float_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/kernels_bf16.h"
#include "core/cpu/matmul.h"
#include "core/cpu/matmul_bf16.h"
#include "core/cpu/row_ranges.h"
#include "core/cpu/vision_rows.h"
#include "core/device.h"
#include "core/error.h"
#include "core/kernels/hellinger.h"
#include "core/kernels/moments.h"
#include "core/kernels/top_tokens.h"
#include "core/process_limits.h"

namespace gigpo {
namespace {

using cpu::Access;
using cpu::AlignedFloats;
using cpu::each_row_range;
using cpu::FloatRows;
using cpu::MatmulArguments;
using cpu::PackedWeight;
using cpu::ThreadPool;

constexpr int64_t rows_in_part = 128;      // rows per part of a sum over rows
constexpr int64_t floats_in_part = 65536;  // floats per part of a sum over a flat buffer
constexpr int64_t rows_in_block = 4;       // rows whose floats fit in the CPU cache
constexpr int64_t shared_tokens = 4;       // measured: a step of 4 tokens takes as long as one of 1, a step of 8 takes 1.5 times as long
constexpr int64_t few_rows = 256;          // maximum rows for which a packed weight is used

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, Type precision)
      : precision_(precision), pool_(threads > 0 ? threads : usable_cpus()) {}

  DeviceTraits traits() const override { return cpu_traits(precision_, pool_.size()); }

  void* allocate(size_t bytes) override {
    void* data = cpu::allocate_aligned(bytes);
    if (!data) throw Error("OUT_OF_MEMORY", "Out of memory: " + std::to_string(bytes >> 20) + " MiB requested. Use a smaller model, batch or cache.");
    return data;
  }
  void release(void* data) override { cpu::release_aligned(data); }
  // Arrays without elements may be null.
  void upload(void* device, const void* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void download(void* host, const void* device, size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void upload_floats(Tensor to, const std::byte* host, Stored type) override {
    pool_.parallel_for((to.columns + floats_in_part - 1) / floats_in_part, [&](int64_t part) {
      const int64_t at = part * floats_in_part;
      dequantize(host + stored_bytes(type, at), type, std::min(floats_in_part, to.columns - at), to.floats() + at);
    });
  }
  void zero(void* data, size_t bytes) override { std::memset(data, 0, bytes); }

  void copy(Tensor from, Tensor to) override {
    each_row_range(pool_, from.rows, [&](int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; r++) copy_row(from.row_range(r, 1), to.row_range(r, 1));
    });
  }

  size_t available() const override { return size_t(available_memory()); }

  void matmul(Tensor a, bool ta, Tensor b, bool tb, Tensor c, bool accumulate, float factor) override {
    const int64_t k = ta ? a.rows : a.columns;
    if (a.type == Type::bf16) cpu::matmul(pool_, cpu::Bf16Matmul{a, ta, b, tb, c, accumulate, {}});
    else cpu::matmul(pool_, {c.rows, c.columns, k, a.floats(), a.stride, ta, b.floats(), b.stride, tb, c.floats(), c.stride,
                           accumulate, nullptr});
    scale(c, factor);
  }

  void linear(Tensor x, Tensor weight, Tensor bias, Tensor added, Tensor y, float factor) override {
    multiply(x, weight, bias, added, y);
    scale(y, factor);
  }

  void multiply(Tensor x, Tensor weight, Tensor bias, Tensor added, Tensor y) {
    const bool accumulate = bool(added);
    if (accumulate && added.data != y.data) copy(added, y);
    const bool half = x.type == Type::bf16;
    const cpu::Bf16Matmul product{x, false, weight, true, y, accumulate, bias};  // used if `half`
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
    if (factor == 1) return;
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

  void gather(const int32_t* indices, Tensor from, Tensor to, const int32_t* later) override {
    for (int64_t i = 0; i < to.rows; i++) {
      const int32_t index = indices[i] < 0 ? later[-1 - indices[i]] : indices[i];
      copy_row(from.row_range(index, 1), to.row_range(i, 1));
    }
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

  void rms_norm(Tensor x, NormWeight weight, int64_t groups, float epsilon, Tensor out, float* scales, Tensor added) override {
    const FloatRows w(weight.values, 0, 1, Access::read);
    if (added && added.data != out.data) copy(added, out);
    each_row_block(x.rows, [&](int64_t first, int64_t count) {
      const FloatRows from(x, first, count, Access::read), to(out, first, count, added ? Access::both : Access::write);
      elementwise_.rms_norm(count, groups, x.columns / groups, from.data, from.stride, w.data, weight.offset, epsilon, to.data,
                            to.stride, bool(added), scales ? scales + first * groups : nullptr);
    });
  }

  void rms_norm_backward(Tensor d_out, Tensor x, NormWeight weight, int64_t groups, const float* scales, Tensor d_x,
                         bool accumulate, Tensor d_weight) override {
    const int64_t size = x.columns / groups;
    const FloatRows w(weight.values, 0, 1, Access::read);
    sum_parts(x.rows, size, d_weight ? d_weight.floats() : nullptr, [&](int64_t first, int64_t count, float* part) {
      const FloatRows d(d_out, first, count, Access::read), from(x, first, count, Access::read);
      const FloatRows to(d_x, first, count, accumulate ? Access::both : Access::write);
      elementwise_.rms_norm_backward(count, groups, size, d.data, d.stride, from.data, from.stride, w.data,
                                     weight.offset, scales + first * groups, to.data, to.stride, accumulate, part);
    });
  }

  void layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon, Tensor out, float* moments) override {
    const FloatRows w(weight, 0, 1, Access::read), b(bias, 0, 1, Access::read);
    each_row_block(x.rows, [&](int64_t first, int64_t count) {
      const FloatRows from(x, first, count, Access::read), to(out, first, count, Access::write);
      for (int64_t r = 0; r < count; r++)
        cpu::layer_norm(x.columns, from.data + r * from.stride, w.data, b.data, epsilon, to.data + r * to.stride, moments + (first + r) * 2);
    });
  }

  void layer_norm_backward(Tensor d_out, Tensor x, Tensor weight, const float* moments, Tensor d_x, Tensor d_weight, Tensor d_bias) override {
    const int64_t columns = x.columns;
    const FloatRows w(weight, 0, 1, Access::read);
    std::vector<float> sums(2 * columns);
    sum_parts(x.rows, 2 * columns, sums.data(), [&](int64_t first, int64_t count, float* part) {
      const FloatRows d(d_out, first, count, Access::read), from(x, first, count, Access::read), to(d_x, first, count, Access::both);
      for (int64_t r = 0; r < count; r++)
        cpu::layer_norm_backward(columns, d.data + r * d.stride, from.data + r * from.stride, w.data, moments + (first + r) * 2,
                                 to.data + r * to.stride, part, part + columns);
    });
    if (d_weight) elementwise_.add(columns, sums.data(), d_weight.floats());
    if (d_bias) elementwise_.add(columns, sums.data() + columns, d_bias.floats());
  }

  void softmax(Tensor scores, float factor, Tensor out) override {
    const cpu::AllKeys keys(scores.columns);
    each_row_range(pool_, scores.rows, [&](int64_t first, int64_t count) {
      thread_local std::vector<float> log_sums;
      log_sums.resize(size_t(count));
      attention_.softmax(count, keys.seen, scores.floats() + first * scores.stride, scores.stride, factor, log_sums.data(), 1);
      for (int64_t r = first; out.data != scores.data && r < first + count; r++) copy_row(scores.row_range(r, 1), out.row_range(r, 1));
    });
  }

  void softmax_backward(Tensor out, Tensor d_out, float factor, Tensor d_scores) override {
    each_row_block(out.rows, [&](int64_t first, int64_t count) {
      const FloatRows p(out, first, count, Access::read), d(d_out, first, count, Access::read), to(d_scores, first, count, Access::write);
      for (int64_t r = 0; r < count; r++)
        cpu::softmax_backward(out.columns, p.data + r * p.stride, d.data + r * d.stride, factor, to.data + r * to.stride);
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
    cpu::attention(pool_, q, k, v, head_size, rows, out, log_sums, [&](int64_t blocks, int64_t longest, const auto& attend) {
      static_assert(cpu::query_block % part_rows == 0);
      // Multiplications per query: scores and weighted sums of values.
      in_parts(blocks * cpu::query_block, 2 * longest * head_size,
               [&](int64_t first, int64_t count) { attend(first / cpu::query_block, count / cpu::query_block); });
    });
  }
  void attention_backward(Tensor d_out, Tensor q, Tensor k, Tensor v, Tensor out, const float* log_sums,
                          int64_t head_size, const PackedRows& rows, Tensor d_q, Tensor d_k, Tensor d_v) override {
    cpu::attention_backward(pool_, d_out, q, k, v, out, log_sums, head_size, rows, d_q, d_k, d_v);
  }
  using Device::paged_attention;
  void paged_attention(Tensor q, Tensor k, Tensor v, int64_t head_size, const PagedBatch& batch,
                       const PagedCache& cache, Tensor out) override {
    cpu::paged_attention(pool_, q, k, v, head_size, batch, cache, out);
  }

  void gated_unit(Tensor gate_up, Gate f, Tensor out) override {
    each_row_block(out.rows, [&](int64_t first, int64_t count) {
      const FloatRows from(gate_up, first, count, Access::read), to(out, first, count, Access::write);
      elementwise_.gated_unit(f, count, out.columns, from.data, from.stride, to.data, to.stride);
    });
  }

  void gated_unit_backward(Tensor d_out, Tensor gate_up, Gate f, Tensor d_gate_up) override {
    each_row_block(d_out.rows, [&](int64_t first, int64_t count) {
      const FloatRows d(d_out, first, count, Access::read), from(gate_up, first, count, Access::read);
      const FloatRows to(d_gate_up, first, count, Access::write);
      elementwise_.gated_unit_backward(f, count, d_out.columns, d.data, d.stride, from.data, from.stride, to.data, to.stride);
    });
  }

  void policy_head(Tensor logits, const PolicyHeadRow* inputs, const PolicyHeadOptions& options,
                   PolicyHeadResult* results, HeadTokens others) override {
    const Tensor d_logits = gradient_of_logits(logits);
    const bool rounds = options.mode != HeadMode::score && d_logits.type == Type::bf16;
    each_row_range(pool_, logits.rows, [&](int64_t first, int64_t count) {
      policy_head_chunk(count, logits.columns, logits.floats() + first * logits.stride, inputs + first, options, results + first,
                        others.from(first));
      // In place: rounded values overwrite only logits that have been read.
      for (int64_t r = first; rounds && r < first + count; r++) copy_row(logits.row_range(r, 1), d_logits.row_range(r, 1));
    });
  }

  void hellinger(Tensor logits, Tensor others, double temperature, float* distances) override {
    pool_.parallel_for(logits.rows, [&](int64_t r) {
      const FloatRows row(logits, r, 1, Access::read), other(others, r, 1, Access::read);
      distances[r] = gigpo::hellinger(logits.columns, row.data, other.data, temperature);
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

  void mask_logits(Tensor logits, const LogitMasks& masks) override {
    pool_.parallel_for(masks.count, [&](int64_t i) {
      const uint32_t* words = masks.words + i * masks.words_per_row;
      const FloatRows row(logits, masks.rows[i], 1, Access::both);
      for (int64_t v = 0; v < logits.columns; v++) {
        if (!(words[v / 32] >> (v % 32) & 1)) row.data[v] = masked_logit;
      }
    });
  }
  void sample(Tensor logits, const SampleInputs& inputs, int32_t* tokens, float* log_probs, float* entropies) override {
    pool_.parallel_for(logits.rows, [&](int64_t r) {
      thread_local AlignedFloats noise;
      const cpu::DrawnToken drawn =
          elementwise_.sample(logits.columns, FloatRows(logits, r, 1, Access::read).data, inputs.temperatures[r], inputs.keys[r],
                              inputs.token_indices[r], reinterpret_cast<uint32_t*>(noise.reserve(logits.columns + 64)));
      tokens[r] = drawn.token, log_probs[r] = drawn.log_prob, entropies[r] = drawn.entropy;
    });
  }

  void top_tokens(Tensor logits, const SampleInputs& inputs, int64_t most, int32_t* tokens, float* log_probs) override {
    pool_.parallel_for(logits.rows, [&](int64_t r) {
      const FloatRows row(logits, r, 1, Access::read);
      gigpo::top_tokens(logits.columns, row.data, inputs.temperatures[r], inputs.top[r], tokens + r * most, log_probs + r * most);
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
  int64_t part_multiplications() const override { return (int64_t{1} << 28) * pool_.size(); }
  struct Packed {
    PackedWeight weight;
    size_t bytes = 0;  // bytes of the unpacked weight
    bool fresh = false;
  };
  void copy_row(Tensor from, Tensor to) const {
    if (from.type == to.type) std::memcpy(to.data, from.data, from.columns * bytes_of(from.type));
    else if (to.type == Type::f32) bf16_.widen(from.columns, from.halves(), to.floats());
    else bf16_.round(from.columns, from.floats(), to.halves());
  }

  // Row ranges for FloatRows: in bf16 the ranges are split into blocks whose floats fit in the CPU cache.
  template <class Body>
  void each_row_block(int64_t rows, Body body) {
    each_row_range(pool_, rows, [&](int64_t first, int64_t count) {
      each_block(first, count, body);
    });
  }
  template <class Body>
  void each_block(int64_t first, int64_t count, Body body) const {
    const int64_t block = precision_ == Type::bf16 ? rows_in_block : count;
    for (int64_t r = first; r < first + count; r += block) body(r, std::min(block, first + count - r));
  }

  // Adds to total[columns] (may be null) the sum over parts of `rows_in_part` rows: body(first, count, part) adds to its zeroed part.
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

// Traits of the CPU device. A chunk of logits should fit in the CPU cache if the vocabulary is small enough.
DeviceTraits cpu_traits(Type precision, int threads) {
  const auto of_floats = [](int64_t rows, int64_t columns) { return cpu::packed_size(rows, columns) * int64_t{sizeof(float)}; };
  const auto of_pairs = [](int64_t rows, int64_t columns) {
    return columns % 2 == 0 ? cpu::packed_size(rows, columns / 2) * int64_t{sizeof(uint32_t)} : 0;
  };
  return {precision, int64_t{1} << 20, 1024, 64, false, false, precision == Type::f32 ? +of_floats : +of_pairs, cpu::attention_bytes,
          threads > 0 ? threads : usable_cpus(), false, shared_tokens};
}

std::unique_ptr<Device> make_cpu_device(int threads, Type precision) { return std::make_unique<CpuDevice>(threads, precision); }

}  // namespace gigpo
