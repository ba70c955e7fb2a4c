// Continuous batching: sequences join and leave between steps, and each step runs the transformer once over whatever is
// there — the next token of every running sequence and pieces of new prompts. What is sampled depends on a request's own
// key and tokens alone, never on its neighbours: the arithmetic of a token does not change with the batch around it.
//
// A device that queues its work is a step ahead of the host: step n + 1 is queued before the host reads what step n has drawn, and takes
// those tokens where the device left them. Positions, pages and random numbers follow from how many tokens there are, and so does an
// end by length; only a stop token is seen too late. What the step under way computes and draws for that sequence is dropped: it
// is neither returned nor counted nor found by others. On the CPU, whose operations are done when they return, nothing would wait, and
// the step for nothing (one in 33 with replies of 32 tokens) would be a loss: there each step is read before the next begins.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/grammar/logit_masks.h"
#include "core/page_pool.h"
#include "core/transformer.h"

namespace gigpo {

struct SampleRequest {
  uint64_t id = 0;
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  float temperature = 1;
  std::vector<int32_t> stop_tokens;
  Key key;
  std::shared_ptr<TokenMasks> constraint = nullptr;  // what the completion must be, its stop tokens among those that end a text; null: anything
  int32_t top = 0;  // of so many likeliest tokens it tells at each place, at most most_top
  std::function<void(int32_t token)> on_token = nullptr;  // told of each as it is read, within `step`; must not throw
  uint64_t client = 0;  // client of the request: clients of one group have equal parts of what the group has; 0: a program that shares with no other
  uint64_t group = 0;   // of the client: groups have equal parts of each step

  static constexpr int32_t most_top = 20;
};

struct Completion {
  uint64_t id;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<float> entropies;  // in nats, of what each token was drawn from: tempered (of temperature 1 at 0), and of what a constraint leaves
  bool stopped;         // by a stop token, or because no more were needed, rather than by length
  std::string failure;  // why it cannot go on, where it cannot: its constraint leaves no token
  // [tokens][SampleRequest::top]; no_token where fewer may be.
  std::vector<int32_t> top_tokens = {};
  std::vector<float> top_log_probs = {};
};

struct GeneratorOptions {
  int64_t cache_bytes;             // of keys and values, all layers
  int64_t step_tokens = 1024;      // new tokens in one step, at most
  int64_t shared_tokens = 8;       // of these, what each client may always have while there are others
  Region* region = nullptr;        // where the cache lies, shared with others; null: memory of its own
};

// Of what a step that draws in so many rows hands to the host.
int64_t drawn_bytes(int64_t rows);
int64_t cache_bytes_per_token(const ModelConfig& config, Type type);
// Pages of a cache of so many bytes: never more than 256 whole sequences' worth, and some in any case.
int64_t cache_pages(const ModelConfig& config, Type type, int64_t bytes);

// Since the start, `computed` and `sampled` of steps that have been read; to be looked at from any thread.
struct GeneratorCounts {
  std::atomic<int64_t> computed = 0;   // tokens that went through the model
  std::atomic<int64_t> reused = 0;     // tokens that did not, because their keys and values were in the cache
  std::atomic<int64_t> sampled = 0;
  std::atomic<int64_t> preempted = 0;  // times that a sequence gave up its pages
};

class Generator {
 public:
  Generator(Device& device, const Transformer& transformer, const GeneratorOptions& options);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Throws Error BAD_ARGUMENT where a request can never run.
  void submit(SampleRequest request);
  // Those of these ids that have not ended: all at once, since each look goes over every sequence.
  void cancel(const std::unordered_set<uint64_t>& ids);
  // Ends those of these ids that have not ended, with the tokens that have been read.
  void finish(const std::unordered_set<uint64_t>& ids, std::vector<Completion>& done);
  bool idle() const { return running_.empty() && !waiting(); }
  // Reads the step under way, where there is one, and appends the sequences that ended to `done`.
  void catch_up(std::vector<Completion>& done) { read(done); }
  // Runs one step (where the device is ahead, it is queued, and the one before is read) and appends the sequences that ended to `done`.
  void step(const PolicyTensors& weights, std::vector<Completion>& done);
  // After a step that threw: drops every sequence and all that the cache holds, some of which was never computed.
  void abandon();
  void weights_changed() { pages_->forget_shared(); }
  std::shared_ptr<const GeneratorCounts> counts() const { return counts_; }

 private:
  struct Sequence {
    SampleRequest request;
    std::vector<int32_t> tokens;  // prompt and what was sampled
    std::vector<float> log_probs;
    std::vector<float> entropies;
    std::vector<int32_t> top_tokens;
    std::vector<float> top_log_probs;
    std::vector<int32_t> pages;
    int64_t published = 0;  // of these, that others can find
    int64_t computed = 0;   // tokens whose keys and values are in the cache, once the device has done what is queued
    int64_t scheduled = 0;  // tokens of the step at hand
    int64_t unread = 0;     // tokens that steps under way draw after `tokens`
    int32_t drawn_row = 0;  // where the last of these lies in `drawn_`
    Grammar::State state = Grammar::none;  // of its constraint, behind `tokens`
    std::shared_ptr<const TokenMask> mask;  // of what may be drawn then
    std::string failure;
    bool suffices = false;  // no more are needed

    int64_t length() const { return int64_t(tokens.size()) + unread; }
    int64_t sampled() const { return length() - int64_t(request.prompt.size()); }
    // Tokens that a step with so much room computes of it: none if its last one is being drawn.
    int64_t wanted(int64_t room) const { return sampled() == request.max_tokens ? 0 : std::min(room, length() - computed); }
    bool stopped() const;
    bool finished() const { return suffices || stopped() || !failure.empty() || (unread == 0 && sampled() == request.max_tokens); }
    void constrain();
    Completion completion();
  };
  using SequencePointer = std::shared_ptr<Sequence>;
  using Clock = std::chrono::steady_clock;
  struct Client {
    uint64_t group = 0;
    std::deque<SequencePointer> waiting;
    int64_t wanted = 0;  // tokens, of a step that has room for them all
    int64_t room = 0;    // tokens that it may still have in the step at hand, if its group has them
    Clock::time_point seen;
  };
  // What the device has been given to do.
  struct Step {
    struct Part {
      std::weak_ptr<Sequence> sequence;  // gone by the time that the step is read: cancelled, or it had ended
      int64_t computed;
      bool draws;
    };
    std::vector<Part> parts;
    // Tokens of those that draw, in this order, then the bits of their log-probabilities and of their entropies; behind these [rows][most]
    // of the likeliest tokens, and the bits of their log-probabilities.
    std::vector<int32_t> drawn;
    int64_t rows = 0, most = 0;
    std::function<void()> wait = [] {};
  };

  void allocate_cache(int64_t pages);
  void lose_cache();
  void schedule();
  void allot();
  bool admit(Client& client, int64_t room);
  int64_t pages_of(uint64_t holder) const;
  size_t youngest_of_largest() const;
  void preempt(size_t index);
  bool waiting() const;
  bool contended() const { return clients_.size() > 1 && waiting(); }
  Client& client_of(const Sequence& sequence) {
    Client& client = clients_[sequence.request.client];
    client.group = sequence.request.group;
    return client;
  }
  // Who has the pages of a sequence, where they are compared: groups, or the clients of the only one.
  uint64_t holder_of(const Sequence& sequence) const { return groups_ > 1 ? sequence.request.group : sequence.request.client; }
  int64_t room_of(const Client& client) { return std::min(client.room, group_room_[client.group]); }
  void use(Client& client, int64_t tokens) { client.room -= tokens, group_room_[client.group] -= tokens; }
  std::optional<Step> queue(const PolicyTensors& weights);
  PagedTokens batch_of(Step& step, std::vector<Sequence*>& sampling);
  void draw(const PolicyTensors& weights, PagedTokens batch, const std::vector<Sequence*>& sampling, Step& step);
  void read(std::vector<Completion>& done);
  static void take(Sequence& sequence, const Step& step, int64_t row);
  template <class Sequences>
  void take_finished(Sequences& sequences, std::vector<Completion>& done);
  void reuse_shared_pages(Sequence& sequence);
  bool take_pages(Sequence& sequence, int64_t tokens);
  bool leaves_reserve() const;
  bool pages_suffice() const;
  bool constrained() const;
  void publish_full_pages(Sequence& sequence);
  void release_pages(Sequence& sequence);

  Device& device_;
  const Transformer& transformer_;
  GeneratorOptions options_;
  int64_t longest_sequence_;
  std::vector<PagedCache> cache_;
  void* cache_memory_ = nullptr;  // its own
  int32_t* drawn_;                // device: Step::drawn of the last step that drew any, whose tokens the next one reads
  std::unique_ptr<PagePool> pages_;
  std::map<uint64_t, Client> clients_;    // that have sequences, or had some a moment ago
  size_t groups_ = 0;                       // of these
  std::map<uint64_t, int64_t> group_room_;  // tokens that clients of a group may still have together in the step at hand
  uint64_t last_admitted_ = 0;              // client whose sequence was the last to be admitted
  std::vector<SequencePointer> running_;  // in order of arrival
  std::optional<Step> under_way_;         // not read yet
  std::shared_ptr<GeneratorCounts> counts_ = std::make_shared<GeneratorCounts>();
  LogitMasker masker_{device_};
  Arena arena_;
};

}  // namespace gigpo
