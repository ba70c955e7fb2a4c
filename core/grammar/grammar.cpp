#include "core/grammar/grammar.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "core/error.h"

namespace gigpo {

namespace {

using Instruction = GrammarInstruction;
using Program = std::vector<Instruction>;

[[noreturn]] void refuse(const std::string& what) { throw Error("BAD_ARGUMENT", "The grammar " + what + "."); }

void check_instructions(const Program& program, size_t sets) {
  const auto known = [&](int32_t at) { return at >= 0 && size_t(at) < program.size(); };
  if (program.empty()) refuse("has no instructions");
  for (const auto& [operation, a, b] : program) {
    const bool two = (operation == Instruction::either || operation == Instruction::call) && known(a) && known(b);
    const bool one = operation == Instruction::match && a >= 0 && size_t(a) < sets && known(b);
    if (!two && !one && operation != Instruction::end) refuse("has an instruction that leads nowhere");
  }
}

// Instructions from which the end of the rule can be reached: the least solution of
//   end: yes   match: `through` its set, and from b   either: from a, or from b   call: from a, and from b.
template <class Through>
std::vector<bool> reach_end(const Program& program, Through through) {
  // Predecessors of instruction `at` are leading_to[begins[at] .. begins[at + 1]). One flat list, because a separate list for each of
  // 100,000 instructions takes tens of milliseconds.
  const auto each_lead = [&](auto&& visit) {
    for (size_t i = 0; i < program.size(); i++) {
      const auto& [operation, a, b] = program[i];
      if (operation == Instruction::either || operation == Instruction::call) visit(size_t(a), int32_t(i));
      if (operation != Instruction::end) visit(size_t(b), int32_t(i));
    }
  };
  std::vector<size_t> begins(program.size() + 2, 0);
  each_lead([&](size_t to, int32_t) { begins[to + 2]++; });
  for (size_t i = 2; i < begins.size(); i++) begins[i] += begins[i - 1];
  std::vector<int32_t> leading_to(begins.back()), found;
  each_lead([&](size_t to, int32_t from) { leading_to[begins[to + 1]++] = from; });
  for (size_t i = 0; i < program.size(); i++) {
    if (program[i].operation == Instruction::end) found.push_back(int32_t(i));
  }
  std::vector<bool> reach(program.size(), false);
  for (const int32_t at : found) reach[size_t(at)] = true;
  while (!found.empty()) {
    const int32_t at = found.back();
    found.pop_back();
    for (size_t lead = begins[size_t(at)]; lead < begins[size_t(at) + 1]; lead++) {
      const int32_t from = leading_to[lead];
      const auto& [operation, a, b] = program[size_t(from)];
      const bool now = operation == Instruction::match    ? through(a) && reach[size_t(b)]
                       : operation == Instruction::either ? reach[size_t(a)] || reach[size_t(b)]
                                                          : reach[size_t(a)] && reach[size_t(b)];
      if (now && !reach[size_t(from)]) {
        reach[size_t(from)] = true;
        found.push_back(from);
      }
    }
  }
  return reach;
}

// Rejects left recursion: a rule that calls itself before a byte is read would never end. Removes rules that call only removed rules; the
// remaining rules call themselves.
void check_recursion(const Program& program) {
  const std::vector<bool> empty = reach_end(program, [](int32_t) { return false; });
  std::map<int32_t, std::set<int32_t>> calls, callers;  // by the first instruction of a rule
  calls[0];
  for (const auto& [operation, a, b] : program) {
    if (operation == Instruction::call) calls[a];
  }
  std::vector<int32_t> seen(program.size(), -1);  // rule for which each instruction was last visited
  for (auto& [rule, called] : calls) {
    std::vector<int32_t> open{rule};
    seen[size_t(rule)] = rule;
    const auto visit = [&, rule = rule](int32_t at) {
      if (std::exchange(seen[size_t(at)], rule) != rule) open.push_back(at);
    };
    while (!open.empty()) {
      const auto& [operation, a, b] = program[size_t(open.back())];
      open.pop_back();
      if (operation == Instruction::either) visit(a), visit(b);
      if (operation != Instruction::call) continue;
      called.insert(a), callers[a].insert(rule);
      if (empty[size_t(a)]) visit(b);
    }
  }
  std::vector<int32_t> done;
  for (const auto& [rule, called] : calls) {
    if (called.empty()) done.push_back(rule);
  }
  size_t sound = 0;
  for (; !done.empty(); sound++) {
    const int32_t rule = done.back();
    done.pop_back();
    for (const int32_t caller : callers[rule]) {
      calls[caller].erase(rule);
      if (calls[caller].empty()) done.push_back(caller);
    }
  }
  if (sound < calls.size()) refuse("has a rule that calls itself before it reads anything");
}

}  // namespace

Grammar::Grammar(Program program, std::vector<ByteSet> sets) : program_(std::move(program)), sets_(std::move(sets)) {
  check_instructions(program_, sets_.size());
  check_recursion(program_);
  leads_out_ = reach_end(program_, [&](int32_t set) { return sets_[size_t(set)].any(); });
  if (!leads_out_[0]) refuse("has no text that ends");
  start_ = number_of({{0, 0}});
}

Grammar::State Grammar::next(State state, uint8_t byte) {
  const State known = states_[size_t(state)]->next[byte];
  if (known != unknown) return known;
  std::vector<Place> places;
  work_ += int64_t(states_[size_t(state)]->places->size());
  for (const auto& [instruction, stack] : *states_[size_t(state)]->places) {
    const auto& [operation, set, then] = program_[size_t(instruction)];
    if (sets_[size_t(set)][byte]) places.push_back({then, stack});
  }
  const State found = places.empty() ? none : number_of(std::move(places));
  return states_[size_t(state)]->next[byte] = found;
}

size_t Grammar::bytes() const {
  constexpr size_t node = 64;  // of a map, about
  return states_.size() * (sizeof(Known) + node) + kept_places_ * sizeof(Place) + frames_.size() * (sizeof(Frame) + node);
}

// State of all places that are reached from these without reading a byte.
Grammar::State Grammar::number_of(std::vector<Place> open) {
  if (bytes() > most_bytes) refuse("has too many states");
  std::unordered_set<uint64_t> seen;
  std::vector<Place> places;
  bool ends = false;
  const auto visit = [&](Place place) {
    if (!leads_out_[size_t(place.instruction)] || !seen.insert(uint64_t(place.instruction) << 32 | uint32_t(place.stack)).second) return;
    if (seen.size() > most_places) refuse("can be read in too many ways at once");
    open.push_back(place);
    work_ += 16;
  };
  for (const Place& place : std::exchange(open, {})) visit(place);
  while (!open.empty()) {
    const Place at = open.back();
    open.pop_back();
    const auto& [operation, a, b] = program_[size_t(at.instruction)];
    switch (operation) {
      case Instruction::match:
        places.push_back(at);
        break;
      case Instruction::either:
        visit({a, at.stack}), visit({b, at.stack});
        break;
      case Instruction::call:
        if (program_[size_t(b)].operation == Instruction::end) {
          visit({a, at.stack});  // tail call: the end of the called rule is also the end of this rule
        } else if (frames_[size_t(at.stack)].depth < most_depth) {
          visit({a, pushed(at.stack, b)});
        }
        break;
      case Instruction::end:
        if (at.stack == 0) {
          ends = true;
        } else {
          const Frame& frame = frames_[size_t(at.stack)];
          visit({frame.returns, frame.below});
        }
        break;
    }
  }
  if (places.empty() && !ends) return none;  // all places exceed most_depth
  std::sort(places.begin(), places.end());
  const auto [found, fresh] = numbers_.try_emplace({std::move(places), ends}, State(states_.size()));
  if (fresh) {
    work_ += 300;
    kept_places_ += found->first.first.size();
    auto known = std::make_unique<Known>(Known{&found->first.first, ends, {}});
    known->next.fill(unknown);
    states_.push_back(std::move(known));
  }
  return found->second;
}

int32_t Grammar::pushed(int32_t below, int32_t returns) {
  const auto [found, fresh] = frame_numbers_.try_emplace({below, returns}, int32_t(frames_.size()));
  if (fresh) frames_.push_back({below, returns, frames_[size_t(below)].depth + 1});
  return found->second;
}

}  // namespace gigpo
