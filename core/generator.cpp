#include "core/generator.h"

#include <algorithm>
#include <bit>

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
  auto sequence = std::make_unique<Sequence>();
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
  pages_->forget_shared();
}

// Another has used the cache's memory: whoever was running waits, and is computed again.
void Generator::lose_cache() {
  while (!running_.empty()) preempt_youngest();
  pages_->forget_shared();
}

void Generator::step(const PolicyTensors& weights, std::vector<Completion>& done) {
  if (options_.region && options_.region->take(this)) lose_cache();
  schedule();
  std::vector<Sequence*> sampling;  // sequences whose next token is drawn now
  PagedTokens batch = batch_of_step(sampling);
  draw(weights, std::move(batch), sampling);
  take_finished(done);
}

PagedTokens Generator::batch_of_step(std::vector<Sequence*>& sampling) {
  PagedTokens batch;
  for (const auto& sequence : running_) batch.table_stride = std::max(batch.table_stride, int64_t(sequence->pages.size()));
  batch.table_stride = int64_t(std::bit_ceil(uint64_t(batch.table_stride)));  // few different sizes, to be replayed
  int32_t index = 0;
  for (const auto& sequence : running_) {
    if (sequence->scheduled == 0) continue;
    for (int64_t i = 0; i < sequence->scheduled; i++) {
      const int64_t position = sequence->computed + i;
      batch.tokens.push_back(sequence->tokens[position]);
      batch.positions.push_back(int32_t(position));
      batch.sequences.push_back(index);
    }
    batch.page_tables.insert(batch.page_tables.end(), sequence->pages.begin(), sequence->pages.end());
    batch.page_tables.resize(++index * batch.table_stride, 0);
    sequence->computed += sequence->scheduled;
    counts_->computed += sequence->scheduled;
    if (sequence->computed == int64_t(sequence->tokens.size())) {
      sampling.push_back(sequence.get());
      batch.wanted.push_back(int32_t(batch.tokens.size()) - 1);
    }
  }
  return batch;
}

// Up to so many tokens a step takes about as long to launch as to compute, also where prompts come with it.
constexpr int64_t short_step = 512;

// Runs the model and gives each sequence of `sampling` its next token. A step that only samples, or is short, is filled up to a size
// that occurs often, and what the device did for it the last time is repeated.
void Generator::draw(const PolicyTensors& weights, PagedTokens batch, const std::vector<Sequence*>& sampling) {
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
  bundle.add(temperatures, &inputs.temperatures);
  bundle.add(keys, &inputs.keys);
  bundle.add(indices, &inputs.token_indices);
  bundle.upload(arena_);
  auto* drawn = arena_.array<int32_t>(2 * filled);  // tokens, then their log-probabilities
  auto* drawn_log_probs = reinterpret_cast<float*>(drawn + filled);
  const auto operations = [&] {
    const Tensor hidden = transformer_.forward_paged(weights, uploaded, cache_, arena_);
    if (!hidden) return;
    const Tensor logits = transformer_.logits(filled, arena_);
    device_.linear(hidden, transformer_.head(weights), {}, {}, logits);
    device_.sample(logits, inputs, drawn, drawn_log_probs);
  };
  device_.batch_invariant([&] {
    if (!repeated) return operations();
    // Sizes of 32 bits each: tokens, hidden states that are asked for, page tables and their length.
    const uint64_t sizes = uint64_t(batch.tokens.size()) << 32 | uint64_t(filled), tables = batch.page_tables.size();
    device_.replay({sizes, tables << 32 | uint64_t(batch.table_stride), arena_.generation(), uint64_t(weights.adapter.data)}, operations);
  });
  if (filled == 0) return;
  std::vector<int32_t> found(2 * filled);
  device_.download(found.data(), drawn, found.size() * sizeof(int32_t));
  for (size_t row = 0; row < sampling.size(); row++) {
    sampling[row]->tokens.push_back(found[row]);
    sampling[row]->log_probs.push_back(std::bit_cast<float>(found[filled + row]));
  }
  counts_->sampled += int64_t(sampling.size());
}

void Generator::take_finished(std::vector<Completion>& done) {
  for (const auto& sequence : running_) {
    if (!finished(*sequence)) continue;
    const SampleRequest& request = sequence->request;
    const auto& stops = request.stop_tokens;
    const bool stopped = std::find(stops.begin(), stops.end(), sequence->tokens.back()) != stops.end();
    done.push_back({request.id, {sequence->tokens.begin() + int64_t(request.prompt.size()), sequence->tokens.end()},
                    std::move(sequence->log_probs), stopped});
    release_pages(*sequence);
  }
  std::erase_if(running_, [&](const SequencePointer& sequence) { return finished(*sequence); });
}

// The next token of every running sequence first; what room is left goes to prompts, in order of arrival. When the cache
// is full the youngest sequence gives up its pages and waits; its tokens are kept and computed again later. So that this is rare, none
// is admitted that would leave the others without a page to go on (as vLLM's watermark does), unless it is alone.
void Generator::schedule() {
  int64_t room = options_.step_tokens;
  for (const auto& sequence : running_) sequence->scheduled = 0;
  for (size_t i = 0; i < running_.size() && room > 0; i++) {
    Sequence& sequence = *running_[i];
    const int64_t wanted = std::min(room, int64_t(sequence.tokens.size()) - sequence.computed);
    while (!take_pages(sequence, sequence.computed + wanted) && running_.size() > i + 1) preempt_youngest();
    if (!take_pages(sequence, sequence.computed + wanted)) {  // it is the youngest itself
      preempt_youngest();
      break;
    }
    sequence.scheduled = wanted;
    share_full_pages(sequence, sequence.computed);
    room -= wanted;
  }
  while (!waiting_.empty() && room > 0) {
    Sequence& sequence = *waiting_.front();
    reuse_shared_pages(sequence);
    const int64_t wanted = std::min(room, int64_t(sequence.tokens.size()) - sequence.computed);
    if (!take_pages(sequence, sequence.computed + wanted) || !leaves_reserve()) {
      release_pages(sequence);
      break;
    }
    counts_->reused += sequence.computed;
    sequence.scheduled = wanted;
    share_full_pages(sequence, sequence.computed);
    room -= wanted;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

static PagePool::PageTokens page_tokens(const std::vector<int32_t>& tokens, int64_t page) {
  PagePool::PageTokens result;
  std::copy_n(tokens.begin() + page * page_size, page_size, result.begin());
  return result;
}

// At least the last token is left to compute: its logits are wanted.
void Generator::reuse_shared_pages(Sequence& sequence) {
  while (sequence.computed + page_size < int64_t(sequence.tokens.size())) {
    const int32_t parent = sequence.pages.empty() ? PagePool::none : sequence.pages.back();
    const int32_t page = pages_->find(parent, page_tokens(sequence.tokens, int64_t(sequence.pages.size())));
    if (page == PagePool::none) return;
    sequence.pages.push_back(page);
    sequence.computed += page_size;
  }
}

bool Generator::take_pages(Sequence& sequence, int64_t tokens) {
  while (int64_t(sequence.pages.size()) * page_size < tokens) {
    const int32_t page = pages_->take();
    if (page == PagePool::none) return false;
    sequence.pages.push_back(page);
  }
  return true;
}

// Whether one that is about to be admitted leaves a page for each that runs already, which is 16 steps for them all.
bool Generator::leaves_reserve() const { return pages_->available() >= int64_t(running_.size()); }

// Pages that this step fills can be found from now on: within a step, keys are written before any are read.
void Generator::share_full_pages(Sequence& sequence, int64_t before) {
  for (int64_t page = before / page_size; (page + 1) * page_size <= before + sequence.scheduled; page++) {
    const int32_t parent = page == 0 ? PagePool::none : sequence.pages[page - 1];
    pages_->share(sequence.pages[page], parent, page_tokens(sequence.tokens, page));
  }
}

void Generator::preempt_youngest() {
  release_pages(*running_.back());
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
  counts_->preempted++;
}

void Generator::release_pages(Sequence& sequence) {
  // The end first: what is forgotten first is then a leaf, without which the rest of its chain can still be found.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page) pages_->give_back(*page);
  sequence.pages.clear();
  sequence.computed = sequence.scheduled = 0;
}

bool Generator::finished(const Sequence& sequence) const {
  const SampleRequest& request = sequence.request;
  if (sequence.sampled() == 0) return false;
  const auto& stops = request.stop_tokens;
  return sequence.sampled() == request.max_tokens ||
         std::find(stops.begin(), stops.end(), sequence.tokens.back()) != stops.end();
}

}  // namespace gigpo
