// Constraint over 51 tokens, fewer than the models of the tests have.
#pragma once
#include <memory>

#include "core/grammar/token_masks.h"

namespace gigpo::test {

// Token t of the first 49 is the byte t; 49 is the end token, and 50 is the bytes 7 and 8. A text is one to ten of the
// bytes 5 to 16, followed by 20.
inline std::shared_ptr<TokenMasks> small_grammar() {
  using Instruction = GrammarInstruction;
  std::vector<uint8_t> bytes;
  std::vector<int64_t> offsets{0};
  for (int token = 0; token < 51; token++) {
    if (token < 49) bytes.push_back(uint8_t(token));
    if (token == 50) bytes.insert(bytes.end(), {7, 8});
    offsets.push_back(int64_t(bytes.size()));
  }
  ByteSet many, last;
  for (size_t byte = 5; byte <= 16; byte++) many.set(byte);
  last.set(20);
  std::vector<Instruction> program;
  constexpr int32_t most = 10, behind = 2 * most;
  for (int32_t i = 0; i < behind; i += 2) {
    program.push_back({Instruction::match, 0, i + 1});
    program.push_back({Instruction::either, i + 2, behind});
  }
  program.push_back({Instruction::match, 1, behind + 1});
  program.push_back({Instruction::end});
  return std::make_shared<TokenMasks>(Grammar(program, {many, last}), std::make_shared<TokenBytes>(bytes, offsets, std::vector<int32_t>{49}));
}

}  // namespace gigpo::test
