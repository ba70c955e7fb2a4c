// Grammars: accepted texts against the language computed from its definition, and allowed tokens against a separate
// walk per token.
#include "core/grammar/grammar.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "core/error.h"
#include "core/grammar/token_masks.h"
#include "core/random.h"
#include "test/core/check.h"

using namespace gigpo;

namespace {

using Instruction = GrammarInstruction;
using Program = std::vector<Instruction>;
using Language = std::set<std::string>;

ByteSet set_of(const std::string& bytes) {
  ByteSet set;
  for (const char byte : bytes) set.set(uint8_t(byte));
  return set;
}

Grammar::State walk(Grammar& grammar, const std::string& text, Grammar::State state) {
  for (const char byte : text) {
    if (state != Grammar::none) state = grammar.next(state, uint8_t(byte));
  }
  return state;
}

bool holds(Grammar& grammar, const std::string& text) {
  const Grammar::State state = walk(grammar, text, grammar.start());
  return state != Grammar::none && grammar.ends(state);
}

// Texts of up to `longest` bytes from each instruction to the end of its rule: the least solution of the definition.
std::vector<Language> languages(const Program& program, const std::vector<ByteSet>& sets, size_t longest) {
  std::vector<Language> found(program.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < program.size(); i++) {
      const auto& [operation, a, b] = program[i];
      Language now;
      if (operation == Instruction::end) now.insert("");
      if (operation == Instruction::either) now = found[size_t(a)], now.insert(found[size_t(b)].begin(), found[size_t(b)].end());
      if (operation == Instruction::match) {
        for (int byte = 0; byte < 256; byte++) {
          for (const std::string& rest : found[size_t(b)]) {
            if (sets[size_t(a)][size_t(byte)] && rest.size() < longest) now.insert(char(byte) + rest);
          }
        }
      }
      if (operation == Instruction::call) {
        for (const std::string& first : found[size_t(a)]) {
          for (const std::string& rest : found[size_t(b)]) {
            if (first.size() + rest.size() <= longest) now.insert(first + rest);
          }
        }
      }
      if (now != found[i]) found[i] = std::move(now), changed = true;
    }
  }
  return found;
}

std::string refusal(Program program, std::vector<ByteSet> sets) {
  try {
    Grammar(std::move(program), std::move(sets));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Whether some text continues from a state to an end, by a walk of the automaton.
bool leads_out(Grammar& grammar, Grammar::State from) {
  std::set<Grammar::State> seen{from};
  std::vector<Grammar::State> open{from};
  while (!open.empty() && seen.size() < 2000) {
    const Grammar::State state = open.back();
    open.pop_back();
    if (grammar.ends(state)) return true;
    for (const uint8_t byte : {'a', 'b'}) {
      const Grammar::State next = grammar.next(state, byte);
      if (next != Grammar::none && seen.insert(next).second) open.push_back(next);
    }
  }
  return seen.size() >= 2000;  // unbounded test_nesting: cannot be decided this way
}

void test_random_grammars() {
  const std::vector<ByteSet> sets{set_of("a"), set_of("b"), set_of("ab"), ByteSet()};
  int refused = 0, held = 0;
  for (uint32_t seed = 0; seed < 600; seed++) {
    uint32_t drawn = 0;
    const auto below = [&](uint32_t most) { return int32_t(philox({7, 8}, drawn++, seed, 0, 0).word[0] % most); };
    const int32_t size = 3 + below(8);
    Program program;
    for (int32_t i = 0; i + 1 < size; i++) {
      const auto operation = Instruction::Operation(below(4));
      const int32_t a = operation == Instruction::match ? below(9) / 3 + (below(20) == 0) : below(uint32_t(size));
      program.push_back({operation, std::min(a, operation == Instruction::match ? 3 : size - 1), below(uint32_t(size))});
    }
    program.push_back({Instruction::end});
    const Language language = languages(program, sets, 6)[0];
    const std::string why = refusal(program, sets);
    if (!why.empty()) {
      refused++;
      CHECK(contains(why, "itself") || language.empty());
      continue;
    }
    Grammar grammar(program, sets);
    std::vector<std::string> texts{""};
    for (size_t i = 0; i < texts.size(); i++) {
      const std::string text = texts[i];
      if (text.size() < 6) texts.push_back(text + "a"), texts.push_back(text + "b");
      CHECK(holds(grammar, text) == language.contains(text));
      held += int(language.contains(text));
      const Grammar::State state = walk(grammar, text, grammar.start());
      const auto begins_so = [&](const std::string& other) { return other.starts_with(text); };
      if (state == Grammar::none) CHECK(std::none_of(language.begin(), language.end(), begins_so));
      if (state != Grammar::none && text.size() < 4) CHECK(leads_out(grammar, state));
    }
  }
  CHECK(refused > 50 && held > 500, "%d %d", refused, held);
}

// ( nested ) or nothing: accepted up to the maximum depth, rejected beyond.
void test_nesting() {
  const Program program{{Instruction::either, 1, 4}, {Instruction::match, 0, 2}, {Instruction::call, 0, 3}, {Instruction::match, 1, 4},
                        {Instruction::end}};
  Grammar grammar(program, {set_of("("), set_of(")")});
  const auto nested = [](int depth) { return std::string(size_t(depth), '(') + std::string(size_t(depth), ')'); };
  CHECK(holds(grammar, "") && holds(grammar, nested(1)) && holds(grammar, nested(Grammar::most_depth)));
  CHECK(!holds(grammar, nested(Grammar::most_depth + 2)) && !holds(grammar, "(()") && !holds(grammar, "())"));
  // A rule that repeats by a tail call needs no stack.
  Grammar list({{Instruction::match, 0, 1}, {Instruction::either, 2, 3}, {Instruction::call, 0, 3}, {Instruction::end}}, {set_of("x")});
  CHECK(holds(list, std::string(5000, 'x')));
}

void test_invalid_grammars() {
  const ByteSet x = set_of("x");
  CHECK(contains(refusal({}, {}), "no instructions"));
  CHECK(contains(refusal({{Instruction::match, 1, 1}, {Instruction::end}}, {x}), "leads nowhere"));
  CHECK(contains(refusal({{Instruction::match, 0, 2}, {Instruction::end}}, {x}), "leads nowhere"));
  CHECK(contains(refusal({{Instruction::call, -1, 1}, {Instruction::end}}, {x}), "leads nowhere"));
  CHECK(contains(refusal({{Instruction::call, 0, 1}, {Instruction::end}}, {x}), "calls itself"));
  // Left recursion through another rule, after one that may be empty.
  CHECK(contains(refusal({{Instruction::call, 2, 1}, {Instruction::end}, {Instruction::call, 1, 3}, {Instruction::call, 0, 1}}, {x}), "calls itself"));
  CHECK(contains(refusal({{Instruction::match, 0, 0}}, {x}), "no text that ends"));
  CHECK(contains(refusal({{Instruction::match, 0, 1}, {Instruction::end}}, {ByteSet()}), "no text that ends"));
}

std::shared_ptr<const TokenBytes> vocabulary(const std::vector<std::string>& tokens, std::vector<int32_t> ends) {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> offsets{0};
  for (const std::string& token : tokens) bytes.insert(bytes.end(), token.begin(), token.end()), offsets.push_back(int64_t(bytes.size()));
  return std::make_shared<const TokenBytes>(std::move(bytes), std::move(offsets), std::move(ends));
}

void masks() {
  // Some tokens share prefixes, some are equal, some have no bytes; 40 and 41 are end tokens.
  std::vector<std::string> tokens;
  for (uint32_t t = 0; t < 70; t++) {
    std::string token;
    for (uint32_t i = 0; i < t % 6; i++) token += "ab()"[philox({1, 2}, i, t, 0, 0).word[0] % 4];
    tokens.push_back(token);
  }
  tokens[40] = "<end>", tokens[41] = "a";
  const auto bytes = vocabulary(tokens, {40, 41});
  // Words of a and b in nested brackets.
  const Program program{{Instruction::either, 1, 5}, {Instruction::either, 2, 4}, {Instruction::match, 0, 3}, {Instruction::call, 0, 7},
                        {Instruction::match, 2, 0}, {Instruction::end}, {Instruction::end}, {Instruction::match, 1, 5}};
  const std::vector<ByteSet> sets{set_of("("), set_of(")"), set_of("ab")};
  TokenMasks made(Grammar(program, sets), bytes);
  Grammar reference(program, sets);
  for (uint32_t seed = 0; seed < 200; seed++) {
    Grammar::State state = made.start(), expected = reference.start();
    for (uint32_t step = 0; step < 12; step++) {
      const auto mask = made.mask(state);
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token < bytes->size(); token++) {
        const bool ends = token == 40 || token == 41;
        const std::string& text = tokens[size_t(token)];
        const bool may = ends ? reference.ends(expected) : !text.empty() && walk(reference, text, expected) != Grammar::none;
        CHECK(may == bool((*mask)[size_t(token) / 32] >> (token % 32) & 1));
        if (may) allowed.push_back(token);
        bool taken = true;
        try {
          made.next(state, token);
        } catch (const Error&) {
          taken = false;
        }
        CHECK(taken == may);
      }
      const int32_t token = allowed[philox({3, 4}, step, seed, 0, 0).word[0] % allowed.size()];
      state = made.next(state, token);
      if (token == 40 || token == 41) {
        CHECK(state == Grammar::none);
        break;
      }
      expected = walk(reference, tokens[size_t(token)], expected);
    }
  }
  // A vocabulary without any token for the required text.
  TokenMasks stuck(Grammar({{Instruction::match, 0, 1}, {Instruction::end}}, {set_of("z")}), bytes);
  CHECK_THROWS(stuck.mask(stuck.start()), "BAD_ARGUMENT");
  CHECK_THROWS(TokenBytes({1}, {0, 2}, {}), "BAD_ARGUMENT");
  CHECK_THROWS(TokenBytes({1}, {0, 1}, {1}), "BAD_ARGUMENT");
}

// Any bytes of "a" and "b", an "a", and `more` bytes of either: one state per set of earlier positions of "a".
Program subsets(int32_t more) {
  Program program{{Instruction::either, 1, 2}, {Instruction::match, 1, 0}, {Instruction::match, 0, 3}};
  for (int32_t i = 0; i < more; i++) program.push_back({Instruction::match, 1, int32_t(program.size()) + 1});
  program.push_back({Instruction::end});
  return program;
}

// Each rule, in brackets, is one of two alternatives that begin with the previous rule: one stack per way to nest.
Program ambiguous(int32_t rules) {
  Program program{{Instruction::call, 0, 1}, {Instruction::end}, {Instruction::match, 1, 1}};
  for (int32_t rule = 0, before = 2; rule < rules; rule++) {
    const auto begin = int32_t(program.size());
    program.insert(program.end(), {{Instruction::either, begin + 1, begin + 2},
                                   {Instruction::match, 0, begin + 3},
                                   {Instruction::match, 0, begin + 4},
                                   {Instruction::call, before, begin + 5},
                                   {Instruction::call, before, begin + 6},
                                   {Instruction::match, 0, 1},
                                   {Instruction::match, 1, 1}});
    before = begin;
  }
  program[0].a = int32_t(program.size()) - 7;
  return program;
}

std::string failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void bounds() {
  const std::vector<ByteSet> sets{set_of("a"), set_of("ab")};
  // Exceeding the bound fails repeatedly, while known states stay usable.
  Grammar many(subsets(60), sets);
  const auto reads = [&](uint32_t seed) {
    Grammar::State state = many.start();
    for (uint32_t i = 0; i < 4000; i++) state = many.next(state, "ab"[philox({5, 6}, i, seed, 0, 0).word[0] % 2]);
  };
  CHECK(failure([&] { reads(0); }) == "");
  std::string why;
  for (uint32_t seed = 1; seed < 40 && why.empty(); seed++) why = failure([&] { reads(seed); });
  CHECK(contains(why, "too many states"), "%s", why.c_str());
  for (uint32_t seed = 40; seed < 80; seed++) CHECK(contains(failure([&] { reads(seed); }), "too many states"));
  CHECK(failure([&] { reads(0); }) == "");

  Grammar deep(ambiguous(40), sets);
  Grammar::State state = deep.start();
  const auto deeper = [&] { state = deep.next(state, 'a'); };
  for (int depth = 0; depth < 12; depth++) CHECK(failure(deeper) == "");
  why = "";
  for (int depth = 12; depth < 40 && why.empty(); depth++) why = failure(deeper);
  CHECK(contains(why, "too many ways at once"), "%s", why.c_str());
  const Grammar::State stuck = state;
  CHECK(contains(failure(deeper), "too many ways at once") && state == stuck);

  // Each token of 14 letters leads to a different state, each with about 200 places.
  std::vector<std::string> tokens{"a", "b"};
  for (uint32_t t = 0; t < 1u << 14; t++) {
    std::string token;
    for (uint32_t i = 0; i < 14; i++) token += "ab"[t >> i & 1];
    tokens.push_back(token);
  }
  tokens.push_back("");
  TokenMasks masks(Grammar(subsets(400), sets), vocabulary(tokens, {int32_t(tokens.size()) - 1}));
  state = masks.start();
  for (uint32_t i = 0; i < 400; i++) state = masks.next(state, int32_t(philox({5, 6}, i, 0, 0, 0).word[0] % 2));
  why = failure([&] { masks.mask(state); });
  CHECK(contains(why, "too much work"), "%s", why.c_str());
  CHECK(masks.next(state, 0) != Grammar::none && (*masks.mask(masks.start()))[0] == ~0u);
}

}  // namespace

int main() {
  test_random_grammars();
  test_nesting();
  test_invalid_grammars();
  masks();
  bounds();
  return test::report();
}
