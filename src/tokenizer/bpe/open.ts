import { GigpoError } from "../../util/errors.ts"
import type { JsonObject } from "../files.ts"
import { readAddedTokens } from "./added-list.ts"
import { BpeTokenizer } from "./bpe-tokenizer.ts"
import { checkConfig } from "./config.ts"
import { isList, isString, kindOf, oneOf, optional, readFields, Unsupported, unsupportedKind } from "./fields.ts"
import { createModel } from "./model.ts"

const isAny = (_value: unknown): _value is unknown => true

/**
 * Makes the tokenizer of tokenizer.json and tokenizer_config.json. Throws BAD_TOKENIZER for every unsupported part, because wrong token ids
 * would go unnoticed in training.
 */
export function openBpe(json: JsonObject, config: JsonObject, path: string): BpeTokenizer {
  try {
    readFields(json, "the file", {
      version: optional(oneOf("1.0")),
      // Truncation and padding are for batches: transformers disables them for single texts.
      truncation: isAny,
      padding: isAny,
      added_tokens: optional(isList),
      normalizer: isAny,
      pre_tokenizer: isAny,
      post_processor: isAny,
      decoder: isAny,
      model: isAny,
    })
    checkPostProcessor(json.post_processor)
    checkConfig(config, json)
    const model = createModel(json.model)
    return new BpeTokenizer(json, model, readAddedTokens(json, config, model.vocabulary))
  } catch (cause) {
    if (!(cause instanceof Unsupported)) throw cause
    throw new GigpoError("BAD_TOKENIZER", `${path} ${cause.message}; use a model whose tokenizer has no such part`, {
      cause,
    })
  }
}

/** Checks the post-processor. Without added special tokens, the supported ones have no effect. */
function checkPostProcessor(json: unknown): void {
  if (json === null || json === undefined) return
  const kind = kindOf(json, "post-processor")
  if (kind === "Sequence") {
    const { processors } = readFields(json, "the post-processor Sequence", { type: isString, processors: isList })
    processors.forEach(checkPostProcessor)
  } else if (!["ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing"].includes(kind))
    throw unsupportedKind(json, "post-processor")
}
