#include "core/transformer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace gigpo {

void PackedTokens::add(const int32_t* from, int64_t length, int32_t position, int32_t branch) {
  tokens.insert(tokens.end(), from, from + length);
  for (int64_t i = 0; i < length; i++) positions.push_back(position++);
  branches.insert(branches.end(), length, branch);
  offsets.back() = int32_t(tokens.size());
}

void PackedTokens::add_row(const int32_t* prompt, int64_t length) {
  prefixes.push_back(int32_t(length));
  offsets.push_back(offsets.back());
  add(prompt, length, 0, 0);
}

void PackedTokens::add_branch(const int32_t* reply, int64_t length) {
  add(reply, length, prefixes.back(), int32_t(tokens.size()) - offsets[offsets.size() - 2]);
}

Transformer::Transformer(Device& device, const ModelConfig& config)
    : device_(device), config_(config), layout_(config) {
  const std::vector<double> frequencies = rotary_frequencies(config);
  std::vector<float> cosine, sine;
  for (int64_t position = 0; position < config.max_positions; position++) {
    for (const double frequency : frequencies) {
      cosine.push_back(float(std::cos(double(position) * frequency)));
      sine.push_back(float(std::sin(double(position) * frequency)));
    }
  }
  const size_t bytes = cosine.size() * sizeof(float);
  cosine_ = static_cast<float*>(device.allocate(bytes));
  sine_ = static_cast<float*>(device.allocate(bytes));
  device.upload(cosine_, cosine.data(), bytes);
  device.upload(sine_, sine.data(), bytes);
}

Transformer::~Transformer() {
  device_.release(cosine_);
  device_.release(sine_);
}

void Transformer::check_length(int64_t tokens) const {
  if (tokens <= config_.max_positions) return;
  throw Error("BAD_ARGUMENT", "A row has " + std::to_string(tokens) + " tokens, but the model was opened for " +
                                  std::to_string(config_.max_positions) + ": shorten the prompt or raise maxPositions.");
}

Tensor Transformer::matrix(const float* weights, int64_t offset, int64_t rows, int64_t columns) const {
  return {const_cast<float*>(weights) + offset, Type::f32, rows, columns, columns};
}

struct Transformer::Weights {
  Tensor input_norm, qkv, qkv_bias, query_norm, key_norm, output, post_norm, gate_up, down;
};

Transformer::Weights Transformer::weights_of(const float* buffer, int64_t l) const {
  const LayerLayout& at = layout_.layers[l];
  const int64_t h = config_.hidden_size, i = config_.intermediate_size, q = config_.query_columns();
  const int64_t qkv = q + 2 * config_.key_value_columns();
  Weights w;
  w.input_norm = matrix(buffer, at.input_norm, 1, h);
  w.qkv = matrix(buffer, at.qkv, qkv, h);
  if (config_.query_key_value_bias) w.qkv_bias = matrix(buffer, at.qkv_bias, 1, qkv);
  if (config_.query_key_norm) {
    w.query_norm = matrix(buffer, at.query_norm, 1, config_.head_size);
    w.key_norm = matrix(buffer, at.key_norm, 1, config_.head_size);
  }
  w.output = matrix(buffer, at.output, h, q);
  w.post_norm = matrix(buffer, at.post_norm, 1, h);
  w.gate_up = matrix(buffer, at.gate_up, 2 * i, h);
  w.down = matrix(buffer, at.down, h, i);
  return w;
}

// The hidden states that nobody wants need no more of the last layer than their keys and values: both forward passes leave
// them out after its attention.
Tensor Transformer::forward(const float* weights, const PackedTokens& batch, Arena& arena, Activations& kept) const {
  const ModelConfig& c = config_;
  const int64_t t = batch.size(), h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns();
  const auto epsilon = float(c.rms_norm_epsilon);
  const PackedRows rows = batch.rows();
  kept.tokens = arena.upload(batch.tokens);
  kept.positions = arena.upload(batch.positions);
  kept.wanted = arena.upload(batch.wanted);
  const Rotary rotary = this->rotary(kept.positions);

  Tensor x = arena.tensor(t, h);
  device_.embed(kept.tokens, matrix(weights, layout_.embedding, c.vocabulary_size, h), x);
  kept.layers.resize(c.layers);
  for (int64_t l = 0; l < c.layers; l++) {
    const Weights w = weights_of(weights, l);
    Activations::Layer& a = kept.layers[l];
    a.input = x;
    a.normed = arena.tensor(t, h);
    a.input_scales = arena.floats(t);
    device_.rms_norm(a.input, w.input_norm, 1, epsilon, a.normed, a.input_scales);
    a.qkv = arena.tensor(t, q + 2 * kv);
    device_.linear(a.normed, w.qkv, w.qkv_bias, a.qkv, false);
    a.heads = a.qkv.column_range(0, q + kv);  // what attention sees of queries and keys
    if (c.query_key_norm) {
      a.heads = arena.tensor(t, q + kv);
      a.query_scales = arena.floats(t * c.heads);
      a.key_scales = arena.floats(t * c.key_value_heads);
      device_.rms_norm(a.qkv.column_range(0, q), w.query_norm, c.heads, epsilon, a.heads.column_range(0, q),
                       a.query_scales);
      device_.rms_norm(a.qkv.column_range(q, kv), w.key_norm, c.key_value_heads, epsilon, a.heads.column_range(q, kv),
                       a.key_scales);
    }
    device_.rotate(a.heads, c.head_size, rotary, false);
    a.attended = arena.tensor(t, q);
    a.log_sums = arena.floats(t * c.heads);
    device_.attention(a.heads.column_range(0, q), a.heads.column_range(q, kv), a.qkv.column_range(q + kv, kv),
                      c.head_size, rows, a.attended, a.log_sums);
    const int64_t n = l + 1 == c.layers ? int64_t(batch.wanted.size()) : t;
    a.middle = arena.tensor(n, h);
    if (l + 1 == c.layers) {
      a.passed_on = arena.tensor(n, q);
      device_.gather(kept.wanted, a.attended, a.passed_on);
      device_.gather(kept.wanted, a.input, a.middle);
    } else {
      a.passed_on = a.attended;
      device_.copy(a.input, a.middle);
    }
    device_.linear(a.passed_on, w.output, {}, a.middle, true);

    a.post_normed = arena.tensor(n, h);
    a.post_scales = arena.floats(n);
    device_.rms_norm(a.middle, w.post_norm, 1, epsilon, a.post_normed, a.post_scales);
    a.gate_up = arena.tensor(n, 2 * c.intermediate_size);
    device_.linear(a.post_normed, w.gate_up, {}, a.gate_up, false);
    a.activated = arena.tensor(n, c.intermediate_size);
    device_.swiglu(a.gate_up, a.activated);
    x = arena.tensor(n, h);
    device_.copy(a.middle, x);
    device_.linear(a.activated, w.down, {}, x, true);
  }
  kept.last = x;
  kept.last_scales = arena.floats(x.rows);
  const Tensor hidden = arena.tensor(x.rows, h);
  device_.rms_norm(x, matrix(weights, layout_.final_norm, 1, h), 1, epsilon, hidden, kept.last_scales);
  return hidden;
}

void Transformer::backward(const float* weights, float* gradients, const PackedTokens& batch, Arena& arena,
                           const Activations& kept, Tensor d_hidden) const {
  const ModelConfig& c = config_;
  const int64_t t = batch.size(), h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns();
  const PackedRows rows = batch.rows();
  const Rotary rotary = this->rotary(kept.positions);
  const auto linear_backward = [&](Tensor d_y, Tensor x, Tensor w, Tensor d_w, Tensor d_x) {
    device_.matmul(d_y, true, x, false, d_w, true);    // dW += dYᵀ · X
    device_.matmul(d_y, false, w, false, d_x, false);  // dX = dY · W
  };

  // From rows of wanted tokens to rows of all.
  const auto spread = [&](Tensor wanted) {
    const Tensor all = arena.tensor(t, wanted.columns);
    device_.zero(all.data, t * all.columns * bytes_of(all.type));
    device_.scatter_add(kept.wanted, wanted, all);
    return all;
  };

  // d_x is the gradient of the residual stream; every block adds to it. Above the last layer's attention it has the wanted
  // rows only, of which there may be more than tokens.
  const int64_t most = std::max(t, d_hidden.rows);
  Tensor d_x = arena.tensor(d_hidden.rows, h), d_attended = arena.tensor(d_hidden.rows, q);
  const Tensor d_normed_rows = arena.tensor(most, h), d_gate_up_rows = arena.tensor(most, 2 * c.intermediate_size);
  const Tensor d_activated_rows = arena.tensor(most, c.intermediate_size), d_qkv = arena.tensor(t, q + 2 * kv);
  const Tensor d_heads_apart = c.query_key_norm ? arena.tensor(t, q + kv) : Tensor{};
  device_.rms_norm_backward(d_hidden, kept.last, matrix(weights, layout_.final_norm, 1, h), 1, kept.last_scales, d_x,
                            false, matrix(gradients, layout_.final_norm, 1, h));
  for (int64_t l = c.layers - 1; l >= 0; l--) {
    const Weights w = weights_of(weights, l), d = weights_of(gradients, l);
    const Activations::Layer& a = kept.layers[l];
    const Tensor d_activated = d_activated_rows.row_range(0, d_x.rows), d_gate_up = d_gate_up_rows.row_range(0, d_x.rows);
    const Tensor d_post_normed = d_normed_rows.row_range(0, d_x.rows), d_normed = d_normed_rows.row_range(0, t);
    linear_backward(d_x, a.activated, w.down, d.down, d_activated);
    device_.swiglu_backward(d_activated, a.gate_up, d_gate_up);
    linear_backward(d_gate_up, a.post_normed, w.gate_up, d.gate_up, d_post_normed);
    device_.rms_norm_backward(d_post_normed, a.middle, w.post_norm, 1, a.post_scales, d_x, true, d.post_norm);

    linear_backward(d_x, a.passed_on, w.output, d.output, d_attended);
    if (l + 1 == c.layers) d_x = spread(d_x), d_attended = spread(d_attended);
    const Tensor d_heads = c.query_key_norm ? d_heads_apart : d_qkv.column_range(0, q + kv);
    device_.attention_backward(d_attended, a.heads.column_range(0, q), a.heads.column_range(q, kv),
                               a.qkv.column_range(q + kv, kv), a.attended, a.log_sums, c.head_size, rows,
                               d_heads.column_range(0, q), d_heads.column_range(q, kv),
                               d_qkv.column_range(q + kv, kv));
    device_.rotate(d_heads, c.head_size, rotary, true);
    if (c.query_key_norm) {
      device_.rms_norm_backward(d_heads.column_range(0, q), a.qkv.column_range(0, q), w.query_norm, c.heads,
                                a.query_scales, d_qkv.column_range(0, q), false, d.query_norm);
      device_.rms_norm_backward(d_heads.column_range(q, kv), a.qkv.column_range(q, kv), w.key_norm, c.key_value_heads,
                                a.key_scales, d_qkv.column_range(q, kv), false, d.key_norm);
    }
    if (c.query_key_value_bias) device_.bias_backward(d_qkv, d.qkv_bias);
    linear_backward(d_qkv, a.normed, w.qkv, d.qkv, d_normed);
    device_.rms_norm_backward(d_normed, a.input, w.input_norm, 1, a.input_scales, d_x, true, d.input_norm);
  }
  device_.embed_backward(kept.tokens, d_x, matrix(gradients, layout_.embedding, c.vocabulary_size, h));
}

Tensor Transformer::forward_paged(const float* weights, const PagedTokens& batch, const std::vector<PagedCache>& cache,
                                  Arena& arena) const {
  const ModelConfig& c = config_;
  const auto t = int64_t(batch.tokens.size());
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns();
  const auto epsilon = float(c.rms_norm_epsilon);
  const PagedBatch paged{arena.upload(batch.positions), arena.upload(batch.sequences), arena.upload(batch.page_tables),
                         batch.table_stride};
  const Rotary rotary = this->rotary(paged.positions);
  const int32_t* tokens = arena.upload(batch.tokens);

  // Nothing is kept between layers, so one set of buffers serves all.
  Tensor x = arena.tensor(t, h), normed = arena.tensor(t, h), attended = arena.tensor(t, q);
  Tensor gate_up = arena.tensor(t, 2 * c.intermediate_size), activated = arena.tensor(t, c.intermediate_size);
  const Tensor qkv = arena.tensor(t, q + 2 * kv);
  const Tensor queries = qkv.column_range(0, q), keys = qkv.column_range(q, kv), values = qkv.column_range(q + kv, kv);
  device_.embed(tokens, matrix(weights, layout_.embedding, c.vocabulary_size, h), x);
  for (int64_t l = 0; l < c.layers; l++) {
    const Weights w = weights_of(weights, l);
    device_.rms_norm(x, w.input_norm, 1, epsilon, normed, nullptr);
    device_.linear(normed, w.qkv, w.qkv_bias, qkv, false);
    if (c.query_key_norm) {
      device_.rms_norm(queries, w.query_norm, c.heads, epsilon, queries, nullptr);
      device_.rms_norm(keys, w.key_norm, c.key_value_heads, epsilon, keys, nullptr);
    }
    device_.rotate(qkv.column_range(0, q + kv), c.head_size, rotary, false);
    device_.paged_attention(queries, keys, values, c.head_size, paged, cache[l], attended);
    if (l + 1 == c.layers) {
      const auto n = int64_t(batch.wanted.size());
      if (n == 0) return {};
      const int32_t* wanted = arena.upload(batch.wanted);
      const auto chosen = [&](Tensor all) {
        const Tensor some = arena.tensor(n, all.columns);
        device_.gather(wanted, all, some);
        return some;
      };
      x = chosen(x), attended = chosen(attended);
      normed = normed.row_range(0, n), gate_up = gate_up.row_range(0, n), activated = activated.row_range(0, n);
    }
    device_.linear(attended, w.output, {}, x, true);
    device_.rms_norm(x, w.post_norm, 1, epsilon, normed, nullptr);
    device_.linear(normed, w.gate_up, {}, gate_up, false);
    device_.swiglu(gate_up, activated);
    device_.linear(activated, w.down, {}, x, true);
  }
  device_.rms_norm(x, matrix(weights, layout_.final_norm, 1, h), 1, epsilon, normed, nullptr);
  return normed;
}

}  // namespace gigpo
