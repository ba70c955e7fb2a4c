// Grammar for constrained decoding: a context-free grammar over bytes, as a program for a pushdown automaton. A text is read byte by byte. A
// state is the set of all places where the program can be (a place: an instruction and a stack of return addresses). Equal sets are one
// state with one number. Transitions are cached: a deterministic automaton that is built on demand.
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
    match,   // reads a byte of sets[a], then continues at b
    either,  // continues at a or at b
    call,    // runs the rule at a, then continues at b
    end,     // end of a rule; with an empty stack the text may end
  };
  Operation operation;
  int32_t a = 0, b = 0;
};

class Grammar {
 public:
  // Maximum nesting depth; deeper nested texts are rejected.
  static constexpr int32_t most_depth = 256;
  // Maximum number of simultaneous places of a text, including places passed without reading a byte. Nested alternatives with equal
  // beginnings multiply the number of places.
  static constexpr size_t most_places = 20'000;
  // Maximum memory of all states.
  static constexpr size_t most_bytes = size_t(32) << 20;
  using State = int32_t;
  static constexpr State none = -1;

  // Compiles a program whose first rule begins at instruction 0. Throws Error BAD_ARGUMENT if an instruction has an invalid target, if a rule
  // calls itself before a byte is read (left recursion), or if no text can end.
  Grammar(std::vector<GrammarInstruction> program, std::vector<ByteSet> sets);

  State start() const { return start_; }
  // State after one more byte; `none` if no text of the grammar continues with this byte. Throws Error BAD_ARGUMENT if more than most_places
  // or most_bytes would be needed; known states stay valid.
  State next(State state, uint8_t byte);
  // Cost of computing states so far, in units of about 3 ns: 1 per place that a byte was compared with, 16 per place that was reached, 300
  // per new state.
  int64_t work() const { return work_; }
  // Whether the text may end here.
  bool ends(State state) const { return states_[size_t(state)]->ends; }

 private:
  struct Place {
    int32_t instruction, stack;
    auto operator<=>(const Place&) const = default;
  };
  // Stack frame. A stack is represented by the index of its top frame, which links to the frame below. 0 is the empty stack.
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
  std::vector<bool> leads_out_;  // [instructions] whether the end of the rule is reachable from the instruction
  std::vector<Frame> frames_{{0, 0, 0}};
  std::map<std::pair<int32_t, int32_t>, int32_t> frame_numbers_;
  std::vector<std::unique_ptr<Known>> states_;
  std::map<std::pair<std::vector<Place>, bool>, State> numbers_;
  size_t kept_places_ = 0;  // number of places of all states
  int64_t work_ = 0;
  State start_;
};

}  // namespace gigpo
