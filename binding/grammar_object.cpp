#include "binding/grammar_object.h"

#include "binding/convert.h"
#include "binding/environment.h"

namespace gigpo {

Napi::Function VocabularyObject::define(Napi::Env env) {
  const Napi::Function made = DefineClass(env, "Vocabulary", {});
  env.GetInstanceData<AddonState>()->vocabulary_class = Napi::Persistent(made);
  return made;
}

VocabularyObject::VocabularyObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  guarded(info.Env(), [&] {
    const std::vector<int32_t> offsets = copy_of<int32_t>(info[1], "offsets");
    tokens_ = std::make_shared<const TokenBytes>(copy_of<uint8_t>(info[0], "bytes"), std::vector<int64_t>(offsets.begin(), offsets.end()),
                                                 copy_of<int32_t>(info[2], "ends"));
  });
}

Napi::Function GrammarObject::define(Napi::Env env) {
  const auto allowed = InstanceMethod<&GrammarObject::allowed>("allowed");
  const Napi::Function made = DefineClass(env, "Grammar", {allowed});
  env.GetInstanceData<AddonState>()->grammar_class = Napi::Persistent(made);
  return made;
}

static std::vector<GrammarInstruction> program_of(const std::vector<int32_t>& numbers) {
  if (numbers.size() % 3 != 0) refuse("An instruction has three numbers.");
  std::vector<GrammarInstruction> program;
  for (size_t i = 0; i < numbers.size(); i += 3) {
    program.push_back({GrammarInstruction::Operation(numbers[i]), numbers[i + 1], numbers[i + 2]});
  }
  return program;
}

static std::vector<ByteSet> sets_of(const std::vector<uint8_t>& bytes) {
  std::vector<ByteSet> sets(bytes.size() / 32);
  for (size_t bit = 0; bit < sets.size() * 256; bit++) {
    if (bytes[bit / 8] >> (bit % 8) & 1) sets[bit / 256].set(bit % 256);
  }
  return sets;
}

GrammarObject::GrammarObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  guarded(info.Env(), [&] {
    const Napi::Env env = info.Env();
    if (!info[0].IsObject() || !info[0].As<Napi::Object>().InstanceOf(env.GetInstanceData<AddonState>()->vocabulary_class.Value()))
      refuse("A grammar needs a vocabulary.");
    const auto& tokens = VocabularyObject::Unwrap(info[0].As<Napi::Object>())->tokens();
    Grammar grammar(program_of(copy_of<int32_t>(info[1], "instructions")), sets_of(copy_of<uint8_t>(info[2], "sets")));
    masks_ = std::make_shared<TokenMasks>(std::move(grammar), tokens);
    masks_->mask(masks_->start());  // throws if no completion is possible at all
  });
}

// Mask of the tokens that may follow the given tokens; undefined after a token that ends the text.
Napi::Value GrammarObject::allowed(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Grammar::State state = masks_->start();
    for (const int32_t token : copy_of<int32_t>(info[0], "tokens")) state = masks_->next(state, token);
    if (state == Grammar::none) return info.Env().Undefined();
    return to_array(info.Env(), std::vector<uint32_t>(*masks_->mask(state)));
  });
}

std::shared_ptr<TokenMasks> masks_of(const Napi::Value& grammar) {
  const Napi::Env env = grammar.Env();
  if (!grammar.IsObject() || !grammar.As<Napi::Object>().InstanceOf(env.GetInstanceData<AddonState>()->grammar_class.Value()))
    refuse("A constraint must be a grammar over the vocabulary.");
  return GrammarObject::Unwrap(grammar.As<Napi::Object>())->masks();
}

}  // namespace gigpo
