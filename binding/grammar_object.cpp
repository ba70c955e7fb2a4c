#include "binding/grammar_object.h"

#include "binding/background.h"
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

// Arguments of a grammar, copied from JavaScript.
struct GrammarArguments {
  explicit GrammarArguments(const Napi::CallbackInfo& info) {
    const auto& vocabulary = info.Env().GetInstanceData<AddonState>()->vocabulary_class.Value();
    if (!info[0].IsObject() || !info[0].As<Napi::Object>().InstanceOf(vocabulary)) refuse("A grammar needs a vocabulary.");
    tokens = VocabularyObject::Unwrap(info[0].As<Napi::Object>())->tokens();
    instructions = copy_of<int32_t>(info[1], "instructions");
    sets = copy_of<uint8_t>(info[2], "sets");
  }

  std::shared_ptr<TokenMasks> masks() const {
    auto masks = std::make_shared<TokenMasks>(Grammar(program_of(instructions), sets_of(sets)), tokens);
    masks->mask(masks->start());  // throws if no completion is possible at all
    return masks;
  }

  std::shared_ptr<const TokenBytes> tokens;
  std::vector<int32_t> instructions;
  std::vector<uint8_t> sets;
};

GrammarObject::GrammarObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  guarded(info.Env(), [&] {
    masks_ = std::exchange(info.Env().GetInstanceData<AddonState>()->prepared_masks, nullptr);
    if (!masks_) masks_ = GrammarArguments(info).masks();
  });
}

Napi::Value prepare_grammar(const Napi::CallbackInfo& info) {
  const auto work = [arguments = GrammarArguments(info)]() -> MakeResult {
    return [masks = arguments.masks()](Napi::Env env) {
      auto* state = env.GetInstanceData<AddonState>();
      state->prepared_masks = masks;  // taken by the constructor
      return state->grammar_class.New({});
    };
  };
  return Background::start(info.Env(), work, Napi::Object::New(info.Env()));
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
