// What a reply may be: a context-free grammar over bytes, as a program for a pushdown automaton. A text is read byte by byte. A state is
// the set of all places where the program can then be (a place: an instruction, and what is returned to); equal sets are one state with
// one number, and what was walked once is looked up from then on: a deterministic automaton that is made as it is needed.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace gigpo {

using ByteSet = std::bitset<256>;

struct GrammarInstruction {
  enum Operation : int32_t {
    match,   // a byte of sets[a], then b
    either,  // a, or b
    call,    // the rule that begins at a, then b
    end,     // of a rule; where nothing is returned to, the text may end
  };
  Operation operation;
  int32_t a = 0, b = 0;
};

class Grammar {
 public:
  // What nests deeper than this is no text of the grammar.
  static constexpr int32_t most_depth = 256;
  // Places that a text may stand at at once, with those that it passes without a byte. An alternative that begins like others doubles
  // them, and within each of these again.
  static constexpr size_t most_places = 20'000;
  // That its states take.
  static constexpr size_t most_bytes = size_t(32) << 20;
  using State = int32_t;
  static constexpr State none = -1;

  // The first rule begins at instruction 0. Throws Error BAD_ARGUMENT where an instruction leads nowhere, where a rule calls itself before
  // a byte is read, and where no text can end.
  Grammar(std::vector<GrammarInstruction> program, std::vector<ByteSet> sets);

  State start() const { return start_; }
  // The state after one more byte; none where no text goes on so. Throws Error BAD_ARGUMENT where it would take more than most_places or
  // most_bytes; what was known before still is.
  State next(State state, uint8_t byte);
  // What finding states has cost so far, in units of some 3 ns each: one for each place that a byte was held against, 16 for each
  // that was gone on to, and 300 for a state.
  int64_t work() const { return work_; }
  // Whether the text may end here.
  bool ends(State state) const { return states_[size_t(state)]->ends; }

 private:
  struct Place {
    int32_t instruction, stack;
    auto operator<=>(const Place&) const = default;
  };
  // A stack is a number: of its uppermost frame, which knows the one below. 0 is empty.
  struct Frame {
    int32_t below, returns, depth;
  };
  struct Known {
    const std::vector<Place>* places;  // each at a `match`, in ascending order
    bool ends;
    std::array<State, 256> next;
  };
  static constexpr State unknown = -2;

  State number_of(std::vector<Place> places);
  size_t bytes() const;
  int32_t pushed(int32_t below, int32_t returns);

  std::vector<GrammarInstruction> program_;
  std::vector<ByteSet> sets_;
  std::vector<bool> leads_out_;  // [instructions] whether some text leads from there to the end of the rule
  std::vector<Frame> frames_{{0, 0, 0}};
  std::map<std::pair<int32_t, int32_t>, int32_t> frame_numbers_;
  std::vector<std::unique_ptr<Known>> states_;
  std::map<std::pair<std::vector<Place>, bool>, State> numbers_;
  size_t kept_places_ = 0;  // of all states
  int64_t work_ = 0;
  State start_;
};

}  // namespace gigpo
