import { GigpoError } from "../../util/errors.ts"
import type { JsonObject } from "../files.ts"
import { readAddedTokens } from "./added-list.ts"
import { BpeTokenizer } from "./bpe-tokenizer.ts"
import { checkConfig } from "./config.ts"
import { isList, isString, kindOf, oneOf, optional, readFields, Unsupported, unsupportedKind } from "./fields.ts"
import { createModel } from "./model.ts"

const isAny = (_value: unknown): _value is unknown => true

/**
 * The tokenizer that tokenizer.json and tokenizer_config.json describe. Fails with BAD_TOKENIZER where they say anything that is not
 * known exactly: wrong token ids would go unnoticed into training.
 */
export function openBpe(json: JsonObject, config: JsonObject, path: string): BpeTokenizer {
  try {
    readFields(json, "the file", {
      version: optional(oneOf("1.0")),
      // Truncation and padding are for batches: transformers turns them off where a text is encoded alone.
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
    throw new GigpoError("BAD_TOKENIZER", `${path} ${cause.message}; take a model whose tokenizer has no such part`, {
      cause,
    })
  }
}

/** Without special tokens to add, none of the known ones changes anything. */
function checkPostProcessor(json: unknown): void {
  if (json === null || json === undefined) return
  const kind = kindOf(json, "post-processor")
  if (kind === "Sequence") {
    const { processors } = readFields(json, "the post-processor Sequence", { type: isString, processors: isList })
    processors.forEach(checkPostProcessor)
  } else if (!["ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing"].includes(kind))
    throw unsupportedKind(json, "post-processor")
}
