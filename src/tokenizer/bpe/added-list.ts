import { isObject, type JsonObject } from "../files.ts"
import { specialTokens } from "../special-tokens.ts"
import type { AddedToken } from "./added-tokens.ts"
import { isBoolean, isCount, isList, isString, optional, readFields, show, Unsupported } from "./fields.ts"
import { longestAdded, mostAdded } from "./limits.ts"

const guards = {
  id: optional(isCount),
  content: isString,
  single_word: optional(isBoolean),
  lstrip: optional(isBoolean),
  rstrip: optional(isBoolean),
  normalized: optional(isBoolean),
  special: optional(isBoolean),
}

/**
 * Added tokens of tokenizer.json with the ids that the library assigns. As in transformers, `added_tokens_decoder` of
 * tokenizer_config.json takes precedence over tokenizer.json, and its special tokens are added tokens, too. Throws Unsupported if the files
 * contain different ids for a token.
 *
 * @param vocabulary - vocabulary of the model
 */
export function readAddedTokens(
  json: JsonObject,
  config: JsonObject,
  vocabulary: ReadonlyMap<string, number>,
): AddedToken[] {
  const tokens = new Map<string, AddedToken>()
  let nextId = vocabulary.size
  const add = (value: unknown, givenId?: number): void => {
    const { __type, ...fields } = isObject(value) ? value : {}
    const where = `the added token ${show(fields.content)}`
    const { content, special = false, ...read } = readFields(fields, where, guards)
    if (content.length > longestAdded)
      throw new Unsupported(`has ${where} of ${content.length} characters; at most ${longestAdded} are supported`)
    const id = tokens.get(content)?.id ?? vocabulary.get(content) ?? nextId++
    if (givenId !== undefined && givenId !== id)
      throw new Unsupported(`gives ${where} the id ${givenId}, but the library tokenizers gives it ${id}`)
    tokens.set(content, {
      id,
      content,
      special: special ?? false,
      single_word: read.single_word ?? false,
      lstrip: read.lstrip ?? false,
      rstrip: read.rstrip ?? false,
      normalized: read.normalized ?? !special,
    })
  }
  for (const token of list(json.added_tokens)) add(token, (token as AddedToken).id)
  for (const [id, token] of Object.entries(isObject(config.added_tokens_decoder) ? config.added_tokens_decoder : {}))
    add(token, Number(id))
  for (const [role, token] of namedTokens(config)) {
    const fields = isObject(token) ? token : { content: token }
    const { content } = fields
    if (tokens.has(content as string)) continue
    if (!isString(content) || !vocabulary.has(content))
      throw new Unsupported(`has no id for the ${role} ${show(content)} of tokenizer_config.json next to it`)
    add({ ...fields, special: true })
  }
  if (tokens.size > mostAdded)
    throw new Unsupported(`has ${tokens.size} added tokens; at most ${mostAdded} are supported`)
  return [...tokens.values()]
}

/** Special tokens of tokenizer_config.json with their keys. */
function namedTokens(config: JsonObject): [key: string, token: unknown][] {
  const roles = Object.keys(specialTokens(config)).map((role): [string, unknown] => [role, config[role]])
  const lists = ["additional_special_tokens", "extra_special_tokens"].flatMap((key) =>
    Object.values(config[key] ?? {}).map((token): [string, unknown] => [key, token]),
  )
  return [...roles, ...lists]
}

function list(value: unknown): readonly unknown[] {
  return isList(value) ? value : []
}
