// Vocabularies and grammars of clients: a program, its sets of bytes, the bytes of tokens, then the tokens of a completion.
#include <cstdlib>

#include "core/error.h"
#include "core/grammar/token_masks.h"
#include "test/core/fuzz/input.h"

namespace gigpo::test {

using Instruction = GrammarInstruction;

std::vector<Bytes> corpus() {
  // x and y, in brackets that need not be closed, over the tokens x, y, xy and (, and an end. A number is written with the kind 2 before it.
  Output nested;
  nested.bytes({5, 2, 1, 2, 1, 2, 2, 2, 1, 2, 0, 1}).bytes({'x', 'y', 'x', 'y', '('}).bytes({1, 2, 4});
  nested.bytes({3, 'x', 1, 'y', 1, '(', 1, 5});
  for (const int number : {1, 1, 3, 0, 0, 2, 0, 1, 4, 0, 2, 0, 3, 0, 0}) nested.bytes({2, number});
  nested.bytes({0, 2, 100, 1, 2, 3, 1, 2, 2, 0, 2, 4});
  std::vector<Bytes> all = random_inputs(24, 300);
  all.push_back(nested);
  return all;
}

static std::shared_ptr<const TokenBytes> vocabulary_of(Input& in) {
  std::vector<int64_t> offsets{0};
  for (int tokens = in.below(80); tokens > 0; tokens--) offsets.push_back(offsets.back() + in.number<int32_t>(6));
  if (in.below(8) == 0 && offsets.size() > 1) offsets[size_t(in.below(int(offsets.size())))] = in.take<int32_t>();
  const int64_t bytes = offsets.back() < 0 || offsets.back() > 4096 ? 16 : offsets.back();
  std::vector<uint8_t> text = in.list<uint8_t>(size_t(bytes));
  std::vector<int32_t> ends;
  for (int count = in.below(4); count > 0; count--) ends.push_back(in.number<int32_t>(int(offsets.size())));
  return std::make_shared<const TokenBytes>(std::move(text), std::move(offsets), std::move(ends));
}

static Grammar grammar_of(Input& in) {
  std::vector<ByteSet> sets(size_t(in.below(6)));
  for (ByteSet& set : sets) {
    const int first = in.byte(), last = in.chance() ? first : in.byte();
    for (int byte = first; byte <= last; byte++) set.set(size_t(byte));
  }
  const int size = in.below(200);
  std::vector<Instruction> program;
  for (int i = 0; i < size; i++) {
    const auto operation = Instruction::Operation(in.number<int32_t>(4));
    const int32_t a = in.number<int32_t>(operation == Instruction::match ? int(sets.size()) + 1 : size);
    program.push_back({operation, a, in.number<int32_t>(size)});
  }
  if (size > 0 && in.chance()) program.back() = {Instruction::end};
  return Grammar(std::move(program), std::move(sets));
}

static void require(bool ok) {
  if (!ok) std::abort();
}

// Takes tokens as sampling does. Exactly the tokens of the mask can be taken.
static void complete(Input& in, TokenMasks& masks) {
  Grammar::State state = masks.start();
  for (int step = 0; step < 64 && in.left() > 0 && state != Grammar::none; step++) {
    int64_t budget = in.chance() ? INT64_MAX : 1000;
    auto mask = masks.mask(state, budget);
    if (!mask) mask = masks.mask(state);
    require(int64_t(mask->size()) == (masks.vocabulary() + 31) / 32);
    const int32_t chosen = in.number<int32_t>(80);
    const bool allowed = chosen >= 0 && chosen < masks.vocabulary() && ((*mask)[size_t(chosen) / 32] >> (chosen % 32) & 1);
    bool taken = true;
    Grammar::State next = state;
    try {
      next = masks.next(state, chosen);
    } catch (const Error&) {
      taken = false;
    }
    require(taken == allowed);
    state = next;
  }
}

}  // namespace gigpo::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gigpo;
  test::Input in(data, size);
  try {
    const auto vocabulary = test::vocabulary_of(in);
    TokenMasks masks(test::grammar_of(in), vocabulary);
    masks.check_model(in.number<int64_t>(120));
    test::complete(in, masks);
  } catch (const Error&) {
  }
  return 0;
}
