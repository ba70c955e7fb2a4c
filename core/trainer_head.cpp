// Head of a training pass: logits, losses and their gradients, chunk by chunk.
#include <algorithm>

#include "core/trainer.h"

namespace gigpo {

namespace {

// Guard that joins all lanes, also on an exception: otherwise later products would still leave room for the lane's losses.
struct Joined {
  ~Joined() {
    for (int lane = 0; lane < lanes; lane++) {
      try {
        device.join(lane);
      } catch (...) {  // the device is lost, and that error is being reported already
      }
    }
  }
  Device& device;
  int lanes;
};

}  // namespace

// Each chunk of logits is overwritten by its gradient, which is multiplied further. With two lanes, the losses of a chunk run concurrently
// with the products of the previous chunk's gradient and of the next chunk's logits, in this order:
//   logits 0, losses 0, logits 1, losses 1, join 0, products 0, logits 2, losses 2, join 1, products 1, …
// Logits of a reference policy are computed for each chunk and compared before the next chunk overwrites them.
Tensor Trainer::run_head(const Models& models, const HeadPass& pass, Arena& arena) {
  const Tensor hidden = pass.hidden.own, reference = pass.hidden.reference;
  const DeviceTraits traits = device_.traits();
  const int64_t vocabulary = transformer_.config().vocabulary_size, chunk = traits.head_chunk(hidden.rows, vocabulary);
  // With a reference policy, half as many rows at a time, so that both together take no more memory than one policy.
  const HeadBuffers buffers(transformer_.shape(0, hidden.rows), reference ? (chunk + 1) / 2 : chunk, traits.lanes,
                            pass.options.mode != HeadMode::score, arena);
  device_.upload(buffers.inputs, pass.inputs.data(), pass.inputs.size_bytes());
  const Tensor table = transformer_.head(models.weights), d_hidden = buffers.d_hidden;
  const Tensor d_table = d_hidden ? transformer_.head(gradient_tensors()) : Tensor{};
  const auto lanes = int64_t(buffers.logits.size()), rows = buffers.logits[0].rows;
  OtherTokens others(device_, pass.batch, pass.columns, pass.options.temperature, vocabulary, rows, buffers.logits.size(), arena);
  const Tensor reference_logits = reference ? transformer_.logits(rows, arena) : Tensor{};
  float* const distances = reference ? arena.floats(hidden.rows) : nullptr;
  const int64_t chunks = rows > 0 ? (hidden.rows + rows - 1) / rows : 0;
  const auto chunk_of = [&](Tensor all, int64_t i) { return all.row_range(i * rows, std::min(rows, all.rows - i * rows)); };
  const auto logits_of = [&](int64_t i) { return buffers.logits[i % lanes].row_range(0, chunk_of(hidden, i).rows); };
  const auto mask = [&](Tensor logits, int64_t i) {
    if (!pass.masks.empty()) masker_.mask(logits, pass.masks.data() + i * rows);
  };
  const auto compare = [&](int64_t i) {
    const Tensor from = chunk_of(reference, i), logits = reference_logits.row_range(0, from.rows);
    device_.matmul(from, false, transformer_.head(*models.reference), true, logits, false);
    mask(logits, i);
    device_.hellinger(logits_of(i), logits, pass.options.temperature, distances + i * rows);
  };
  const auto pass_on = [&](int64_t i) {
    const Tensor d_logits = device_.gradient_of_logits(logits_of(i));
    device_.join(int(i % lanes));
    if (reference) compare(i);
    if (pass.scores) others.write_scores(i % lanes, i * rows, logits_of(i), *pass.scores);
    if (d_table) device_.matmul(d_logits, true, chunk_of(hidden, i), false, d_table, true);
    if (d_hidden) device_.matmul(d_logits, false, table, false, chunk_of(d_hidden, i), false);
  };
  const auto multiplications = [&](int64_t i) {  // issued between the losses and the join of chunk i
    if (lanes == 1) return 0.0;
    const int64_t before = i > 0 ? rows : 0, after = i + 1 < chunks ? chunk_of(hidden, i + 1).rows : 0;
    return double(table.rows) * double(table.columns) * double(before * (bool(d_table) + bool(d_hidden)) + after);
  };
  const Joined joined{device_, int(lanes)};
  for (int64_t i = 0; i < chunks; i++) {
    if (i >= lanes) pass_on(i - lanes);
    const Tensor logits = logits_of(i);
    device_.in_parts(logits.rows, table.rows * table.columns, [&](int64_t first, int64_t count) {
      device_.matmul(chunk_of(hidden, i).row_range(first, count), false, table, true, logits.row_range(first, count), false);
    });
    mask(logits, i);
    device_.policy_head_concurrent(int(i % lanes), multiplications(i), logits, buffers.inputs + i * rows, pass.options,
                               pass.results + i * rows, others.of(i % lanes, i * rows, logits.rows));
  }
  for (int64_t i = std::max<int64_t>(chunks - lanes, 0); i < chunks; i++) pass_on(i);
  if (!reference) return d_hidden;
  std::vector<float> found(size_t(hidden.rows));
  device_.download(found.data(), distances, found.size() * sizeof(float));
  for (size_t i = 0; i < found.size(); i++) pass.scores->hellingers[size_t(pass.columns[i])] = found[i];
  return d_hidden;
}

}  // namespace gigpo
