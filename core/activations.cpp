#include "core/activations.h"

#include <algorithm>

namespace gigpo {

void Activations::allocate(const PassShape& shape, Recompute recompute, Arena& arena) {
  const ModelConfig& c = shape.config;
  const int64_t t = shape.tokens, wanted = shape.wanted, most = std::max(t, wanted);
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns();
  Layer shared{};
  const auto place = [&](Tensor Layer::*member, Layer& a, bool again, int64_t rows, int64_t columns) {
    if (!again) {
      a.*member = arena.tensor(rows, columns);
      return;
    }
    if (!(shared.*member)) shared.*member = arena.tensor(most, columns);
    a.*member = (shared.*member).row_range(0, rows);
  };
  // Layers may have pairs of different ranks. Memory that layers share has the columns of the widest pair.
  const auto place_narrow = [&](Tensor Layer::*member, Layer& a, bool again, int64_t rows, int64_t ranks) {
    if (ranks == 0) return;
    place(member, a, again, rows, again ? shape.adapter.widest() : ranks);
    a.*member = (a.*member).column_range(0, ranks);
  };
  const bool norms = recompute >= Recompute::norms, mlp = recompute >= Recompute::mlp, block = recompute == Recompute::block;
  layers.assign(c.layers, {});
  for (int64_t l = 0; l < c.layers; l++) {
    Layer& a = layers[l];
    const bool is_last = l + 1 == c.layers;
    const int64_t n = is_last ? wanted : t;
    a.input = arena.tensor(t, h);
    a.input_scales = arena.floats(t);
    place(&Layer::normed, a, norms, t, h);
    place(&Layer::qkv, a, block, t, q + 2 * kv);
    a.heads = a.qkv.column_range(0, q + kv);  // queries and keys as attention uses them
    if (c.query_key_norm) {
      place(&Layer::heads, a, block, t, q + kv);
      a.query_scales = arena.floats(t * c.heads);
      a.key_scales = arena.floats(t * c.key_value_heads);
    }
    place(&Layer::attended, a, block, t, q);
    a.log_sums = arena.floats(t * c.heads);
    a.passed_on = a.attended;
    if (is_last) place(&Layer::passed_on, a, block, n, q);
    if (c.branch_norms) {
      place(&Layer::projected, a, block, n, h);
      place(&Layer::fed, a, mlp, n, h);
      a.projected_scales = arena.floats(n), a.fed_scales = arena.floats(n);
    }
    place(&Layer::middle, a, block, n, h);
    a.post_scales = arena.floats(n);
    place(&Layer::post_normed, a, norms, n, h);
    place(&Layer::gate_up, a, mlp, n, 2 * c.intermediate_size);
    place(&Layer::activated, a, norms, n, c.intermediate_size);
    if (!shape.adapter) continue;
    const auto ranks = [&](int first, int last) { return shape.adapter.ranks(l, first, last); };
    place_narrow(&Layer::narrow_qkv, a, block, t, ranks(Projection::query, Projection::value));
    place_narrow(&Layer::narrow_output, a, block, n, ranks(Projection::output, Projection::output));
    place_narrow(&Layer::narrow_gate_up, a, mlp, n, ranks(Projection::gate, Projection::up));
    place_narrow(&Layer::narrow_down, a, false, n, ranks(Projection::down, Projection::down));
  }
  last = arena.tensor(wanted, h);
  last_scales = arena.floats(wanted);
  hidden = arena.tensor(wanted, h);
}

ActivationGradients::ActivationGradients(const PassShape& shape, Arena& arena) {
  const ModelConfig& c = shape.config;
  const int64_t t = shape.tokens, n = shape.wanted, most = std::max(t, n);
  const int64_t h = c.hidden_size, q = c.query_columns(), kv = c.key_value_columns();
  wanted_x = arena.tensor(n, h), wanted_attended = arena.tensor(n, q);
  x = arena.tensor(t, h), attended = arena.tensor(t, q);
  normed = arena.tensor(most, h);
  gate_up = arena.tensor(most, 2 * c.intermediate_size), activated = arena.tensor(most, c.intermediate_size);
  if (const int64_t ranks = shape.adapter.widest()) narrow = arena.tensor(most, ranks);
  qkv = arena.tensor(t, q + 2 * kv);
  if (c.query_key_norm) heads = arena.tensor(t, q + kv);
}

StepBuffers::StepBuffers(const PassShape& shape, Arena& arena) {
  const ModelConfig& c = shape.config;
  const int64_t t = shape.tokens, n = shape.wanted, h = c.hidden_size, q = c.query_columns();
  x = arena.tensor(t, h), normed = arena.tensor(t, h), attended = arena.tensor(t, q);
  gate_up = arena.tensor(t, 2 * c.intermediate_size), activated = arena.tensor(t, c.intermediate_size);
  if (const int64_t ranks = shape.adapter.widest()) narrow = arena.tensor(t, ranks);
  qkv = arena.tensor(t, q + 2 * c.key_value_columns());
  if (n > 0) wanted_x = arena.tensor(n, h), wanted_attended = arena.tensor(n, q);
}

// All chunks except the last have the same size, so that a plan for more rows never needs less memory.
HeadBuffers::HeadBuffers(const PassShape& shape, int64_t chunk_rows, int most_lanes, bool training, Arena& arena)
    : inputs(arena.array<PolicyHeadRow>(shape.wanted)) {
  const int64_t lanes = shape.wanted > chunk_rows ? most_lanes : 1;
  const int64_t rows = std::min((shape.wanted + lanes - 1) / lanes, chunk_rows);
  for (int64_t lane = 0; lane < lanes; lane++) logits.push_back(logits_of(shape.config, rows, arena));
  if (training) d_hidden = arena.tensor(shape.wanted, shape.config.hidden_size);
}

}  // namespace gigpo
