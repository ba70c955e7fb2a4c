#include "core/generator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"

namespace gigpo {

constexpr int64_t page_size = PagedCache::page_size;

Generator::Generator(Device& device, const Transformer& transformer, const GeneratorOptions& options)
    : device_(device), transformer_(transformer), options_(options), arena_(device) {
  const ModelConfig& c = transformer.config();
  int64_t pages = cache_pages(c, device.activation_type(), options.cache_bytes);
  if (options.region)
    pages = std::min(pages, int64_t(options.region->bytes()) / (cache_bytes_per_token(c, device.activation_type()) * page_size));
  longest_sequence_ = std::min(c.max_positions, pages * page_size);
  pages_ = std::make_unique<PagePool>(int32_t(pages));
  allocate_cache(pages);
  drawn_ = static_cast<int32_t*>(device_.allocate(size_t(2 * device_.replay_size(options_.step_tokens)) * sizeof(int32_t)));
}

int64_t cache_bytes_per_token(const ModelConfig& config, Type type) {
  return 2 * config.layers * config.key_value_columns() * bytes_of(type);
}

int64_t cache_pages(const ModelConfig& config, Type type, int64_t bytes) {
  const int64_t longest = (config.max_positions + page_size - 1) / page_size;
  return std::clamp(bytes / (cache_bytes_per_token(config, type) * page_size), std::min<int64_t>(longest, 4), longest * 256);
}

void Generator::allocate_cache(int64_t pages) {
  const ModelConfig& c = transformer_.config();
  const Type type = device_.activation_type();
  const int64_t page_floats = c.key_value_columns() * page_size;
  const size_t store_bytes = size_t(pages * page_floats * bytes_of(type));
  if (!options_.region) cache_memory_ = device_.allocate(2 * c.layers * store_bytes);
  auto* data = options_.region ? options_.region->data() : static_cast<std::byte*>(cache_memory_);
  const auto store = [&] {
    const Tensor result{data, type, pages, page_floats, page_floats};
    data += store_bytes;
    return result;
  };
  for (int64_t layer = 0; layer < c.layers; layer++) {
    const Tensor keys = store();
    cache_.push_back({keys, store()});
  }
}

Generator::~Generator() {
  if (cache_memory_) device_.release(cache_memory_);
  device_.release(drawn_);
}

void Generator::submit(SampleRequest request) {
  if (request.prompt.empty()) throw Error("BAD_ARGUMENT", "The prompt is empty: give at least one token.");
  if (request.max_tokens < 1) throw Error("BAD_ARGUMENT", "maxTokens must be at least 1.");
  const auto prompt = int64_t(request.prompt.size());
  if (request.max_tokens > longest_sequence_ - prompt) {
    throw Error("BAD_ARGUMENT", "Prompt and reply may need " + std::to_string(prompt + request.max_tokens) + " tokens, but there is room for " +
                                    std::to_string(longest_sequence_) +
                                    ": shorten the prompt, lower maxTokens, or raise maxPositions or cacheBytes.");
  }
  transformer_.check_tokens(request.prompt);
  auto sequence = std::make_shared<Sequence>();
  sequence->tokens = request.prompt;
  sequence->request = std::move(request);
  waiting_.push_back(std::move(sequence));
}

void Generator::cancel(const std::unordered_set<uint64_t>& ids) {
  const auto matches = [&](const SequencePointer& sequence) { return ids.contains(sequence->request.id); };
  std::erase_if(waiting_, matches);
  for (const auto& sequence : running_) {
    if (matches(sequence)) release_pages(*sequence);
  }
  std::erase_if(running_, matches);
}

void Generator::abandon() {
  for (const auto& sequence : running_) release_pages(*sequence);
  running_.clear();
  waiting_.clear();
  under_way_.reset();
  pages_->forget_shared();
}

void Generator::step(const PolicyTensors& weights, std::vector<Completion>& done) {
  if (options_.region && options_.region->take(this)) {
    read(done);  // drawn before the memory was lost
    lose_cache();
  }
  if (under_way_ && !pages_suffice()) read(done);
  schedule();
  std::optional<Step> next = queue(weights);
  read(done);
  under_way_ = std::move(next);
  if (!device_.traits().asynchronous) read(done);
}

std::optional<Generator::Step> Generator::queue(const PolicyTensors& weights) {
  Step step;
  std::vector<Sequence*> sampling;  // sequences whose next token is drawn now
  PagedTokens batch = batch_of(step, sampling);
  if (step.parts.empty()) return std::nullopt;
  draw(weights, std::move(batch), sampling, step);
  return step;
}

PagedTokens Generator::batch_of(Step& step, std::vector<Sequence*>& sampling) {
  PagedTokens batch;
  for (const auto& sequence : running_) batch.table_stride = std::max(batch.table_stride, int64_t(sequence->pages.size()));
  batch.table_stride = int64_t(std::bit_ceil(uint64_t(batch.table_stride)));  // few different sizes, to be replayed
  int32_t index = 0;
  for (const auto& sequence : running_) {
    if (sequence->scheduled == 0) continue;
    for (int64_t i = 0; i < sequence->scheduled; i++) {
      const int64_t position = sequence->computed + i;
      batch.tokens.push_back(position < int64_t(sequence->tokens.size()) ? sequence->tokens[position] : -1 - sequence->drawn_row);
      batch.positions.push_back(int32_t(position));
      batch.sequences.push_back(index);
    }
    batch.page_tables.insert(batch.page_tables.end(), sequence->pages.begin(), sequence->pages.end());
    batch.page_tables.resize(++index * batch.table_stride, 0);
    sequence->computed += sequence->scheduled;
    const bool draws = sequence->computed == sequence->length();
    step.parts.push_back({sequence, std::exchange(sequence->scheduled, 0), draws});
    if (!draws) continue;
    sampling.push_back(sequence.get());
    batch.wanted.push_back(int32_t(batch.tokens.size()) - 1);
  }
  return batch;
}

// Up to so many tokens a step takes about as long to launch as to compute, also where prompts come with it.
constexpr int64_t short_step = 512;

// Has the model run and draw the next token of each sequence of `sampling`. A step that only samples, or is short, is filled up to a size
// that occurs often, and what the device did for it the last time is repeated.
void Generator::draw(const PolicyTensors& weights, PagedTokens batch, const std::vector<Sequence*>& sampling, Step& step) {
  const auto tokens = int64_t(batch.tokens.size()), sampled = int64_t(sampling.size());
  const bool repeated = sampled > 0 && (sampled == tokens || tokens <= short_step);
  const int64_t filled = repeated ? device_.replay_size(sampled) : sampled;
  std::vector<float> temperatures(filled, 0.f);
  std::vector<Key> keys(filled);
  std::vector<int32_t> indices(filled, 0);
  for (size_t row = 0; row < sampling.size(); row++) {
    temperatures[row] = sampling[row]->request.temperature;
    keys[row] = sampling[row]->request.key;
    indices[row] = int32_t(sampling[row]->sampled());
    sampling[row]->unread++;
    sampling[row]->drawn_row = int32_t(row);
  }
  if (repeated) {
    const int64_t tables = int64_t(batch.page_tables.size()) / batch.table_stride;
    batch.fill(device_.replay_size(tokens), device_.replay_size(tables), filled);
  }

  arena_.reset();
  PagedTokens::Uploaded uploaded{};
  SampleInputs inputs{};
  Arena::Bundle bundle;
  batch.add_to(bundle, uploaded);
  uploaded.drawn = drawn_;
  bundle.add(temperatures, &inputs.temperatures);
  bundle.add(keys, &inputs.keys);
  bundle.add(indices, &inputs.token_indices);
  bundle.upload(arena_);
  const auto operations = [&] {
    const Tensor hidden = transformer_.forward_paged(weights, uploaded, cache_, arena_);
    if (!hidden) return;
    const Tensor logits = transformer_.logits(filled, arena_);
    device_.linear(hidden, transformer_.head(weights), {}, {}, logits);
    device_.sample(logits, inputs, drawn_, reinterpret_cast<float*>(drawn_ + filled));
  };
  device_.batch_invariant([&] {
    if (!repeated) return operations();
    // Sizes of 32 bits each: tokens, hidden states that are asked for, page tables and their length.
    const uint64_t sizes = uint64_t(batch.tokens.size()) << 32 | uint64_t(filled), tables = batch.page_tables.size();
    device_.replay({sizes, tables << 32 | uint64_t(batch.table_stride), arena_.generation(), uint64_t(weights.adapter.data)}, operations);
  });
  if (filled == 0) return;
  step.rows = filled;
  step.drawn.resize(2 * filled);
  step.wait = device_.fetch(step.drawn.data(), drawn_, step.drawn.size() * sizeof(int32_t));
}

// Gives the sequences what the step under way has drawn for them.
void Generator::read(std::vector<Completion>& done) {
  if (!under_way_) return;
  const Step step = *std::exchange(under_way_, std::nullopt);
  step.wait();
  for (int64_t row = 0; const auto& [part, computed, draws] : step.parts) {
    const int64_t own = draws ? row++ : -1;
    const SequencePointer sequence = part.lock();
    if (!sequence) continue;
    counts_->computed += computed;
    if (!draws) continue;
    sequence->tokens.push_back(step.drawn[own]);
    sequence->log_probs.push_back(std::bit_cast<float>(step.drawn[step.rows + own]));
    sequence->unread--;
    counts_->sampled++;
    if (!sequence->finished()) publish_full_pages(*sequence);
  }
  take_finished(done);
}

void Generator::take_finished(std::vector<Completion>& done) {
  for (const auto& sequence : running_) {
    if (!sequence->finished()) continue;
    const SampleRequest& request = sequence->request;
    done.push_back({request.id, {sequence->tokens.begin() + int64_t(request.prompt.size()), sequence->tokens.end()},
                    std::move(sequence->log_probs), sequence->stopped()});
    release_pages(*sequence);
  }
  std::erase_if(running_, [](const SequencePointer& sequence) { return sequence->finished(); });
}

bool Generator::Sequence::stopped() const {
  const auto& stops = request.stop_tokens;
  return tokens.size() > request.prompt.size() && std::find(stops.begin(), stops.end(), tokens.back()) != stops.end();
}

}  // namespace gigpo
