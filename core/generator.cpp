#include "core/generator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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
  drawn_ = static_cast<int32_t*>(device_.allocate(size_t(drawn_bytes(device_.replay_size(options_.step_tokens)))));
}

int64_t cache_bytes_per_token(const ModelConfig& config, Type type) {
  return 2 * config.layers * config.key_value_columns() * bytes_of(type);
}

// Number of words of Generator::Step::drawn for `rows` rows with `most` most likely tokens each.
static int64_t drawn_words(int64_t rows, int64_t most) { return rows * (3 + 2 * most); }

int64_t drawn_bytes(int64_t rows) { return drawn_words(rows, SampleRequest::most_top) * int64_t{sizeof(int32_t)}; }

int64_t cache_pages(const ModelConfig& config, Type type, int64_t bytes) {
  const int64_t longest = (config.max_positions + page_size - 1) / page_size;
  return std::clamp(bytes / (cache_bytes_per_token(config, type) * page_size), std::min<int64_t>(longest, 4), longest * 256);
}

void Generator::allocate_cache(int64_t pages) {
  const ModelConfig& c = transformer_.config();
  const Type type = device_.activation_type();
  const int64_t page_floats = c.key_value_columns() * page_size;
  // All layers of a page are adjacent. If each layer had memory of its own, a page that is the first in its huge page of memory would be so in
  // all layers, and the system would clear 2 x layers huge pages within one step.
  const int64_t page_stride = 2 * c.layers * page_floats;
  if (!options_.region) cache_memory_ = device_.allocate(size_t(pages * page_stride * bytes_of(type)));
  auto* data = options_.region ? options_.region->data() : static_cast<std::byte*>(cache_memory_);
  const auto store = [&] {
    const Tensor result{data, type, pages, page_floats, page_stride};
    data += size_t(page_floats * bytes_of(type));
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
  const int64_t needed = request.max_tokens > INT64_MAX - prompt ? INT64_MAX : prompt + request.max_tokens;
  if (needed > longest_sequence_) {
    throw Error("BAD_ARGUMENT", "Prompt and completion may need " + std::to_string(needed) + " tokens, but there is room for " +
                                    std::to_string(longest_sequence_) +
                                    ": shorten the prompt, lower maxTokens, or raise maxPositions or kvCacheBytes.");
  }
  transformer_.check_tokens(request.prompt);
  if (request.top < 0 || request.top > SampleRequest::most_top)
    throw Error("BAD_ARGUMENT", "topTokens must be from 0 to " + std::to_string(SampleRequest::most_top) + ".");
  auto sequence = std::make_shared<Sequence>();
  if (const auto& constraint = request.constraint) {
    constraint->check_model(transformer_.config().vocabulary_size);
    sequence->constrained = true;
    sequence->mask = constraint->mask(sequence->state = constraint->start());
  }
  sequence->tokens = request.prompt;
  if (const auto& tower = transformer_.config().vision) {
    place_images(*tower, sequence->tokens, {}, request.images, "The prompt");
    if (!tower->sections.empty()) sequence->places = places_of(*tower, sequence->tokens.data(), prompt, request.images, &sequence->next_place);
  }
  sequence->request = std::move(request);
  client_of(*sequence).waiting.push_back(std::move(sequence));
}

void Generator::cancel(const std::unordered_set<uint64_t>& ids) {
  const auto matches = [&](const SequencePointer& sequence) { return ids.contains(sequence->request.id); };
  for (auto& [id, client] : clients_) std::erase_if(client.waiting, matches);
  for (const auto& sequence : running_) {
    if (matches(sequence)) release_pages(*sequence);
  }
  std::erase_if(running_, matches);
}

void Generator::finish(const std::unordered_set<uint64_t>& ids, std::vector<Completion>& done) {
  const auto finish_in = [&](auto& sequences) {
    for (const auto& sequence : sequences) sequence->suffices |= ids.contains(sequence->request.id);
    take_finished(sequences, done);
  };
  for (auto& [id, client] : clients_) finish_in(client.waiting);
  finish_in(running_);
}

void Generator::abandon() {
  for (const auto& sequence : running_) release_pages(*sequence);
  running_.clear();
  clients_.clear();
  under_way_.reset();
  pages_->forget_shared();
}

void Generator::step(const PolicyTensors& weights, std::vector<Completion>& done) {
  if (options_.region && options_.region->take(this)) {
    read(done);  // drawn before the memory was lost
    lose_cache();
  }
  if (under_way_ && (!pages_suffice() || constrained() || contended())) read(done);
  find_masks(done);
  const Clock::time_point began = Clock::now();
  schedule();
  std::optional<Step> next = queue(weights);
  read(done);
  under_way_ = std::move(next);
  if (!device_.traits().asynchronous) read(done);
  last_step_ = Clock::now() - began;
}

// Whether a running sequence is constrained and has an unread token: its next mask depends on this token, which only the device knows.
bool Generator::constrained() const {
  return std::any_of(running_.begin(), running_.end(), [](const SequencePointer& sequence) { return sequence->constrained && sequence->unread > 0; });
}

std::optional<Generator::Step> Generator::queue(const PolicyTensors& weights) {
  Step step;
  std::vector<Sequence*> sampling;  // sequences whose next token is sampled in this step
  PagedTokens batch = batch_of(step, sampling);
  if (step.parts.empty()) return std::nullopt;
  draw(weights, std::move(batch), sampling, step);
  return step;
}

PagedTokens Generator::batch_of(Step& step, std::vector<Sequence*>& sampling) {
  PagedTokens batch;
  for (const auto& sequence : running_) batch.table_stride = std::max(batch.table_stride, int64_t(sequence->pages.size()));
  batch.table_stride = int64_t(std::bit_ceil(uint64_t(batch.table_stride)));  // few different sizes, so that steps can be replayed
  int32_t index = 0;
  for (const auto& sequence : running_) {
    if (sequence->scheduled == 0) continue;
    const auto first = int64_t(batch.tokens.size());
    for (int64_t i = 0; i < sequence->scheduled; i++) {
      const int64_t position = sequence->computed + i;
      batch.tokens.push_back(position < int64_t(sequence->tokens.size()) ? sequence->tokens[position] : -1 - sequence->drawn_row);
      batch.positions.push_back(int32_t(position));
      batch.sequences.push_back(index);
    }
    if (transformer_.config().vision) add_places(*sequence, first, batch);
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

// Adds the images and rotary positions of the sequence's tokens in this step, which are those of the batch from `first` on. Tables of
// places are only needed in steps with tokens of images.
void Generator::add_places(const Sequence& sequence, int64_t first, PagedTokens& batch) const {
  const VisionConfig& tower = *transformer_.config().vision;
  const int64_t known = std::clamp<int64_t>(int64_t(sequence.request.prompt.size()) - sequence.computed, 0, sequence.scheduled);
  append_runs(tower, sequence.tokens.data() + sequence.computed, known, first, sequence.request.images, batch.tokens, batch.images);
  if (tower.sections.empty()) return;
  for (int64_t i = 0; i < sequence.scheduled; i++) {
    batch.places.push_back(sequence.place(sequence.computed + i));
    batch.rotary_positions.push_back(batch.places.back()[0]);
  }
}

// Maximum number of tokens for which a step takes about as long to launch as to compute, including steps with prompts.
constexpr int64_t short_step = 512;

// Runs the model and samples the next token of each sequence of `sampling`. A step that only samples, or is short, is padded to a common
// size, so that the device can replay the operations recorded for this size.
void Generator::draw(const PolicyTensors& weights, PagedTokens batch, const std::vector<Sequence*>& sampling, Step& step) {
  const auto tokens = int64_t(batch.tokens.size()), sampled = int64_t(sampling.size());
  bool masked = false;
  for (const Sequence* sequence : sampling) {
    masked |= bool(sequence->mask);
    step.most = std::max<int64_t>(step.most, sequence->request.top);
  }
  const bool apart = masked || step.most > 0;  // masks and top tokens are not needed in every step and are not recorded
  const bool repeated = sampled > 0 && (sampled == tokens || tokens <= short_step) && batch.images.empty();  // those copy other memory each time
  if (batch.images.empty()) batch.places.clear();
  const int64_t filled = repeated ? device_.replay_size(sampled) : sampled;
  std::vector<float> temperatures(filled, 0.f);
  std::vector<Key> keys(filled);
  std::vector<int32_t> indices(filled, 0), top(filled, 0);
  for (size_t row = 0; row < sampling.size(); row++) {
    temperatures[row] = sampling[row]->request.temperature;
    keys[row] = sampling[row]->request.key;
    indices[row] = int32_t(sampling[row]->sampled());
    top[row] = sampling[row]->request.top;
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
  bundle.add(top, &inputs.top);
  bundle.upload(arena_);
  const Tensor logits = transformer_.logits(filled, arena_);
  const auto compute = [&] {
    const Tensor hidden = transformer_.forward_paged(weights, uploaded, cache_, arena_);
    if (hidden) device_.linear(hidden, transformer_.head(weights), {}, {}, logits);
  };
  const auto floats = [&](int64_t at) { return reinterpret_cast<float*>(drawn_ + at); };
  const auto sample = [&] {
    if (filled > 0) device_.sample(logits, inputs, drawn_, floats(filled), floats(2 * filled));
  };
  const auto operations = [&] {
    compute();
    if (!apart) sample();
  };
  device_.batch_invariant([&] {
    // Sizes of 32 bits each: tokens, wanted hidden states, page tables and their stride.
    const uint64_t sizes = uint64_t(batch.tokens.size()) << 32 | uint64_t(filled), tables = batch.page_tables.size();
    const Device::ReplayKey key{sizes, tables << 32 | uint64_t(batch.table_stride), arena_.generation() << 1 | uint64_t{apart}, uint64_t(weights.adapter.data)};
    repeated ? device_.replay(key, operations) : operations();
    if (!apart) return;
    std::vector<const TokenMask*> masks(filled, nullptr);
    for (int64_t row = 0; row < sampled; row++) masks[row] = sampling[row]->mask.get();
    if (masked) masker_.mask(logits, masks.data());
    sample();
    const int64_t behind = drawn_words(filled, 0);
    if (step.most > 0) device_.top_tokens(logits, inputs, step.most, drawn_ + behind, floats(behind + filled * step.most));
  });
  if (filled == 0) return;
  step.rows = filled;
  step.drawn.resize(size_t(drawn_words(filled, step.most)));
  step.wait = device_.fetch(step.drawn.data(), drawn_, step.drawn.size() * sizeof(int32_t));
}

// Reads the sampled tokens of the step in progress and adds them to the sequences.
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
    take(*sequence, step, own);
    if (sequence->constrained) sequence->constrain();
    counts_->sampled++;
    if (!sequence->finished()) publish_full_pages(*sequence);
  }
  take_finished(running_, done);
}

// Adds the token sampled in `row` to the sequence, with log-probability, entropy and top tokens.
void Generator::take(Sequence& sequence, const Step& step, int64_t row) {
  const auto number = [](int32_t bits) { return std::bit_cast<float>(bits); };
  const int32_t token = step.drawn[row];
  sequence.tokens.push_back(token);
  sequence.log_probs.push_back(number(step.drawn[step.rows + row]));
  sequence.entropies.push_back(number(step.drawn[2 * step.rows + row]));
  sequence.unread--;
  const auto top = step.drawn.begin() + drawn_words(step.rows, 0) + row * step.most, top_log_probs = top + step.rows * step.most;
  sequence.top_tokens.insert(sequence.top_tokens.end(), top, top + sequence.request.top);
  std::transform(top_log_probs, top_log_probs + sequence.request.top, std::back_inserter(sequence.top_log_probs), number);
  if (sequence.request.on_token) sequence.request.on_token(token);
}

Completion Generator::Sequence::completion() {
  const auto first = tokens.begin() + int64_t(request.prompt.size());
  return {request.id, {first, tokens.end()}, std::move(log_probs), std::move(entropies), suffices || stopped(), failure, std::move(top_tokens),
          std::move(top_log_probs)};
}

template <class Sequences>
void Generator::take_finished(Sequences& sequences, std::vector<Completion>& done) {
  for (const auto& sequence : sequences) {
    if (!sequence->finished()) continue;
    done.push_back(sequence->completion());
    release_pages(*sequence);
  }
  std::erase_if(sequences, [](const SequencePointer& sequence) { return sequence->finished(); });
}

// Least work on masks for each group in a step, about 1 ms, if there are several groups, and work in a nanosecond. With a large vocabulary a
// mask may take 10 ms or more, and each sequence of a request may need another one after each token.
constexpr int64_t least_mask_work = 300'000;
constexpr double mask_work_per_nanosecond = 1. / 3;

// Finds the masks of constrained sequences for the next step. Groups have as much time for it as the last step took. A sequence whose mask
// takes longer waits for a later step.
void Generator::find_masks(std::vector<Completion>& done) {
  const int64_t share = std::max(least_mask_work, int64_t(mask_work_per_nanosecond * double(last_step_.count())));
  std::map<uint64_t, int64_t> left;
  const auto find = [&](Sequence& sequence) {
    if (!sequence.waits_for_mask()) return false;
    const int64_t all = groups_ > 1 ? share : std::numeric_limits<int64_t>::max();
    sequence.find_mask(left.try_emplace(sequence.request.group, all).first->second);
    return !sequence.failure.empty();
  };
  bool failed = false;
  for (const auto& sequence : running_) failed |= find(*sequence);
  if (failed) take_finished(running_, done);
  for (auto& [id, client] : clients_) {  // a preempted sequence
    if (!client.waiting.empty() && find(*client.waiting.front())) take_finished(client.waiting, done);
  }
}

void Generator::Sequence::find_mask(int64_t& budget) {
  try {
    mask = request.constraint->mask(state, budget);
  } catch (const Error& error) {  // affects only this sequence
    failure = error.what();
  }
}

// Follows the last token. If its log-probability is not finite, the token may violate the constraint; the constraint is dropped, and the
// error is detected from the log-probabilities.
void Generator::Sequence::constrain() {
  mask.reset();
  if (!std::isfinite(log_probs.back())) {
    constrained = false;
    return;
  }
  try {
    state = request.constraint->next(state, tokens.back());
  } catch (const Error& error) {
    failure = error.what();
  }
}

bool Generator::Sequence::stopped() const {
  const auto& stops = request.stop_tokens;
  if (constrained && state == Grammar::none) return true;  // the text has ended by the grammar, even if the token is not in stop_tokens
  return tokens.size() > request.prompt.size() && std::find(stops.begin(), stops.end(), tokens.back()) != stops.end();
}

}  // namespace gigpo
