// Scheduling of the generator: sequences of the next step and their pages of the KV cache.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/generator.h"

namespace gigpo {

constexpr int64_t page_size = PagedCache::page_size;

// Schedules the next token of every running sequence first, then prompts in order of arrival. When the KV cache is full, the youngest
// sequence is preempted: its pages are released, and its tokens are computed again later. To make this rare, a sequence is only admitted if
// free pages remain for the running sequences (like the watermark of vLLM), or if no other sequence is running.
//
// Several clients share each step and the KV cache; see `allot` and `admit`.
void Generator::schedule() {
  allot();
  int64_t left = options_.step_tokens;
  for (size_t i = 0; i < running_.size() && left > 0;) {
    const SequencePointer sequence = running_[i];
    if (sequence->waits_for_mask()) {
      i++;
      continue;
    }
    Client& client = client_of(*sequence);
    const int64_t wanted = sequence->wanted(tokens_for(client, *sequence, left));
    bool gave_up = false;
    while (!gave_up && !take_pages(*sequence, sequence->computed + wanted)) {
      const size_t victim = youngest_of_largest();
      gave_up = victim == i;
      if (victim < i) i--;
      preempt(victim);
    }
    if (gave_up) continue;  // the next sequence has this index now
    sequence->scheduled = wanted;
    publish_full_pages(*sequence);
    use(client, *sequence, wanted), left -= wanted;
    i++;
  }
  // Round-robin over clients: otherwise, in a group with more clients than room, clients with the lowest ids would always be first.
  auto at = clients_.upper_bound(last_admitted_);
  for (size_t turn = clients_.size(); turn > 0; turn--, at++) {
    if (at == clients_.end()) at = clients_.begin();
    auto& [id, client] = *at;
    while (!client.waiting.empty() && !client.waiting.front()->waits_for_mask()) {
      const SequencePointer sequence = client.waiting.front();
      const int64_t room = tokens_for(client, *sequence, left);
      if (room == 0 || !admit(client, room)) break;
      use(client, *sequence, sequence->scheduled), left -= sequence->scheduled;
      last_admitted_ = id;
    }
  }
}

// Maximum cost of a step shared by clients, as a multiple of shared_tokens. Steps are kept short because a new client waits for the end of
// the step in progress. Many steps of this size keep a device as busy as few long ones.
constexpr int64_t longest_shared = 32;
// Time for which an idle client still counts as a client, so that its next request waits only for a short step.
constexpr std::chrono::seconds remembered{1};
// Time of a multiply-add of attention, whose operands are read for one token only, relative to one of a product with weights; measured.
constexpr double attention_time = 2;

// Cost of the next token of a sequence, in tokens without context: its attention to a long context may take longer than all else.
double Generator::cost_of(const Sequence& sequence) const {
  const ModelConfig& c = transformer_.config();
  int64_t visible = 0;
  for (int64_t layer = 0; layer < c.layers; layer++) {
    const int64_t window = c.kind(layer).window;
    visible += window > 0 ? std::min(window, sequence.computed) : sequence.computed;
  }
  return 1 + attention_time * double(visible * c.attention_products()) / double(c.weight_products());
}

// Number of tokens of a sequence that its client may compute in this step. A client with any credit may compute a token, and owes the rest
// of its cost to later steps: otherwise a token with a higher cost than the credit of a step would never be computed.
int64_t Generator::tokens_for(const Client& client, const Sequence& sequence, int64_t left) {
  const double credit = std::min(client.credit, group_credit_[client.group]);
  return credit > 0 ? int64_t(std::min(double(left), std::max(credit / cost_of(sequence), 1.0))) : 0;
}

void Generator::use(Client& client, const Sequence& sequence, int64_t tokens) {
  const double cost = double(tokens) * cost_of(sequence);
  client.credit -= cost, group_credit_[client.group] -= cost;
}

// Share of each of several members of `room`: as much as the smallest demand, so that a step takes for no member much longer than its own
// tokens would, but at least `always`, which takes little more time than one token. At most an equal part of the room.
static double equal_part(double room, const std::vector<double>& wanted, int64_t always) {
  if (wanted.size() < 2) return room;
  const double part = room / double(wanted.size());
  return std::min(std::max(*std::min_element(wanted.begin(), wanted.end()), double(always)), part);
}

// Credit for a step with a share of `part`: it is not saved for later steps, but debt is.
static double credited(double before, double part) { return std::min(before + part, part); }

// Gives each client its credit for the current step. Groups share the step, and the clients of a group share the part of the group, so that
// a group with many clients gets no more than another group. Only client 0, if alone, gets the whole step without the bound of longest_shared.
// Group 0 is many clients with a few requests each. Together they demand more than another group, but none of them does: the other groups
// get the smallest shares, together at most half of the step, and group 0 gets the rest.
void Generator::allot() {
  const Clock::time_point now = Clock::now();
  const auto holds_pages = [&](uint64_t client) {
    return std::any_of(running_.begin(), running_.end(), [&](const SequencePointer& s) { return s->request.client == client && !s->pages.empty(); });
  };
  for (auto& [id, client] : clients_) client.wanted = 0;
  for (const auto& sequence : running_) client_of(*sequence).wanted += double(sequence->wanted(options_.step_tokens)) * cost_of(*sequence);
  for (auto& [id, client] : clients_) {
    for (const auto& sequence : client.waiting) {
      if (client.wanted >= double(options_.step_tokens)) break;
      client.wanted += double(sequence->tokens.size());
    }
    if (client.wanted > 0) client.seen = now;
  }
  std::erase_if(clients_, [&](const auto& entry) { return entry.second.wanted == 0 && !holds_pages(entry.first) && now - entry.second.seen > remembered; });
  const bool whole = clients_.size() == 1 && clients_.contains(0);
  const double room = whole ? std::numeric_limits<double>::infinity() : double(std::min(options_.step_tokens, longest_shared * options_.shared_tokens));
  std::map<uint64_t, std::vector<double>> groups;  // demands of the clients of each group
  for (const auto& [id, client] : clients_) groups[client.group].push_back(client.wanted);
  const bool beside_many = groups.size() > 1 && groups.contains(0);
  std::vector<double> wanted;
  for (const auto& [group, each] : groups) wanted.push_back(group == 0 ? 0 : std::accumulate(each.begin(), each.end(), 0.0));
  const double of_each = equal_part(beside_many ? room / 2 : room, wanted, options_.shared_tokens);
  const double of_others = std::accumulate(wanted.begin(), wanted.end(), 0.0, [&](double sum, double one) { return sum + std::min(one, of_each); });
  const auto of_group = [&](uint64_t group) { return beside_many && group == 0 ? std::max(room - of_others, room / 2) : of_each; };
  groups_ = groups.size();
  std::erase_if(group_credit_, [&](const auto& entry) { return !groups.contains(entry.first); });
  for (const auto& [group, each] : groups) group_credit_[group] = credited(group_credit_[group], of_group(group));
  for (auto& [id, client] : clients_)
    client.credit = credited(client.credit, equal_part(of_group(client.group), groups[client.group], options_.shared_tokens));
}

// Admits the first waiting sequence of a client to the current step if there are pages for it. Sequences of a group with more pages may be
// preempted for a group that has fewer pages even with the new ones; with a single group, the same applies to clients.
bool Generator::admit(Client& client, int64_t room) {
  const SequencePointer sequence = client.waiting.front();
  reuse_shared_pages(*sequence);
  const int64_t wanted = sequence->wanted(room);
  const auto fits = [&] { return take_pages(*sequence, sequence->computed + wanted) && leaves_reserve(); };
  while (!fits()) {
    const int64_t own = pages_of(holder_of(*sequence)) + (sequence->computed + wanted + page_size - 1) / page_size;
    const size_t victim = clients_.size() > 1 ? youngest_of_largest() : running_.size();
    if (victim == running_.size() || pages_of(holder_of(*running_[victim])) <= own) {
      release_pages(*sequence);
      return false;
    }
    preempt(victim);
  }
  counts_->reused += sequence->computed;
  sequence->scheduled = wanted;
  publish_full_pages(*sequence);
  running_.push_back(sequence);
  client.waiting.pop_front();
  return true;
}

int64_t Generator::pages_of(uint64_t holder) const {
  int64_t pages = 0;
  for (const auto& sequence : running_) {
    if (holder_of(*sequence) == holder) pages += int64_t(sequence->pages.size());
  }
  return pages;
}

// Index in `running_` of the youngest sequence of the holder with the most pages; the size of `running_` if there is none.
size_t Generator::youngest_of_largest() const {
  if (clients_.size() < 2) return running_.empty() ? 0 : running_.size() - 1;
  std::map<uint64_t, int64_t> pages;
  for (const auto& sequence : running_) pages[holder_of(*sequence)] += int64_t(sequence->pages.size());
  const auto largest = std::max_element(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  size_t index = running_.size();
  for (size_t i = 0; i < running_.size(); i++) {
    if (holder_of(*running_[i]) == largest->first) index = i;
  }
  return index;
}

bool Generator::waiting() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) { return !entry.second.waiting.empty(); });
}

static PagePool::PageTokens page_tokens(const std::vector<int32_t>& tokens, int64_t page) {
  PagePool::PageTokens result;
  std::copy_n(tokens.begin() + page * page_size, page_size, result.begin());
  return result;
}

// Reuses shared pages of the prefix. At least the last token is left to be computed, because its logits are needed.
void Generator::reuse_shared_pages(Sequence& sequence) {
  while (sequence.computed + page_size < int64_t(sequence.tokens.size())) {
    const int32_t parent = sequence.pages.empty() ? PagePool::none : sequence.pages.back();
    const int32_t page = pages_->find(parent, page_tokens(sequence.tokens, int64_t(sequence.pages.size())));
    if (page == PagePool::none) return;
    sequence.pages.push_back(page);
    sequence.published++;
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

// Whether one page per running sequence remains free when a sequence is admitted: enough for 16 further tokens of each.
bool Generator::leaves_reserve() const { return pages_->available() >= int64_t(running_.size()); }

// Whether all running sequences can continue without preemption. If not, the step in progress is read first: some sequences may have ended,
// and a sequence with an unread token must not be preempted.
bool Generator::pages_suffice() const {
  int64_t missing = 0;
  for (const auto& sequence : running_) {
    const int64_t tokens = sequence->computed + sequence->wanted(options_.step_tokens);
    missing += std::max<int64_t>((tokens + page_size - 1) / page_size - int64_t(sequence->pages.size()), 0);
  }
  return missing <= pages_->available();
}

// Shares full pages whose tokens are known to the host. Includes pages that the current step fills: within a step, keys are written before
// any are read.
void Generator::publish_full_pages(Sequence& sequence) {
  const int64_t full = std::min(sequence.computed + sequence.scheduled, int64_t(sequence.tokens.size())) / page_size;
  for (int64_t& page = sequence.published; page < full; page++) {
    const int32_t parent = page == 0 ? PagePool::none : sequence.pages[page - 1];
    pages_->share(sequence.pages[page], parent, page_tokens(sequence.tokens, page));
  }
}

void Generator::preempt(size_t index) {
  const SequencePointer sequence = std::move(running_[index]);
  running_.erase(running_.begin() + int64_t(index));
  release_pages(*sequence);
  client_of(*sequence).waiting.push_front(sequence);
  counts_->preempted++;
}

void Generator::release_pages(Sequence& sequence) {
  // Last page first: the page that is evicted first is then the end of the chain, and the rest of the chain can still be found.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page) pages_->give_back(*page);
  sequence.pages.clear();
  sequence.computed = sequence.scheduled = sequence.published = 0;
}

// Recovers after another user of the region has overwritten the KV cache: all running sequences are preempted and computed again.
void Generator::lose_cache() {
  while (!running_.empty()) preempt(running_.size() - 1);
  pages_->forget_shared();
}

}  // namespace gigpo
