// JavaScript classes of a vocabulary's bytes and of a grammar over them; typed as NativeVocabulary and NativeGrammar in src/native.ts.
#pragma once
#include "binding/napi_setup.h"
#include "core/grammar/token_masks.h"

namespace gigpo {

class VocabularyObject : public Napi::ObjectWrap<VocabularyObject> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit VocabularyObject(const Napi::CallbackInfo& info);
  const std::shared_ptr<const TokenBytes>& tokens() const { return tokens_; }

 private:
  std::shared_ptr<const TokenBytes> tokens_;
};

class GrammarObject : public Napi::ObjectWrap<GrammarObject> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit GrammarObject(const Napi::CallbackInfo& info);
  const std::shared_ptr<TokenMasks>& masks() const { return masks_; }

 private:
  Napi::Value allowed(const Napi::CallbackInfo& info);

  std::shared_ptr<TokenMasks> masks_;
};

// Promise of a grammar whose masks are computed on another thread; arguments as of the class.
Napi::Value prepare_grammar(const Napi::CallbackInfo& info);

// Masks of a result of NativeVocabulary.grammar. Throws Error BAD_ARGUMENT for any other value.
std::shared_ptr<TokenMasks> masks_of(const Napi::Value& grammar);

}  // namespace gigpo
