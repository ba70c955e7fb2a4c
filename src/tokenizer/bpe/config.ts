import { isObject, type JsonObject } from "../files.ts"
import { isList, show, Unsupported } from "./fields.ts"

/** Keys of tokenizer_config.json that change the ids of a text if true. */
const changing = [
  "split_special_tokens",
  "do_lower_case",
  "do_lowercase",
  "do_lowercase_and_remove_accent",
  "remove_space",
  "strip_accents",
]

/** Throws Unsupported if tokenizer_config.json implies other ids than tokenizer.json. */
export function checkConfig(config: JsonObject, json: JsonObject): void {
  for (const key of changing)
    if (config[key] === true) throw new Unsupported(`does not follow ${key} in tokenizer_config.json next to it`)
  const prefix = config.add_prefix_space
  if (typeof prefix !== "boolean") return
  const prepends = addsPrefixSpace(json.normalizer) ?? addsPrefixSpace(json.pre_tokenizer) ?? false
  if (prefix !== prepends) {
    const does = prepends ? "puts a space before texts" : "puts no space before texts"
    throw new Unsupported(`${does}, but add_prefix_space in tokenizer_config.json next to it is ${show(prefix)}`)
  }
}

/** Whether a normalizer or pre-tokenizer inserts a space before a text; undefined if it has no such option. */
function addsPrefixSpace(part: unknown): boolean | undefined {
  if (!isObject(part)) return undefined
  const steps = part.normalizers ?? part.pretokenizers
  if (isList(steps)) return steps.map(addsPrefixSpace).find((adds) => adds !== undefined)
  if (part.type === "Prepend") return true
  if (part.type === "Metaspace") return part.prepend_scheme !== "never"
  return part.type === "ByteLevel" ? part.add_prefix_space === true : undefined
}
