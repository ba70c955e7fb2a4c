import { GigpoError } from "../util/errors.ts"
import { byteCharacters } from "./byte-level.ts"
import { badTokenizer, isObject, type JsonObject } from "./files.ts"

/** Checked part of tokenizer.json; `openBpe` checks the rest. */
export interface TokenizerJson extends JsonObject {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: readonly unknown[]
    readonly unk_token?: string | null
  }
  readonly added_tokens: readonly AddedTokenJson[]
}

interface AddedTokenJson {
  readonly id: number
  readonly content: string
  readonly special?: boolean
}

/** Maximum id + 1, so that a corrupt id does not create a huge array. */
const idLimit = 2 ** 24

/** Checks the tokens and ids of tokenizer.json. Throws BAD_TOKENIZER. */
export function checkTokenizerJson(json: JsonObject, path: string): asserts json is TokenizerJson {
  const { model, added_tokens: added } = json
  if (!isObject(model)) throw badTokenizer(path, "lacks model")
  if (model.type !== undefined && model.type !== "BPE")
    throw new GigpoError(
      "BAD_TOKENIZER",
      `${path} has a tokenizer of the type ${show(model.type)}; only BPE is supported, use a model with a BPE tokenizer`,
    )
  if (!isObject(model.vocab) || !Array.isArray(model.merges))
    throw badTokenizer(path, "lacks model.vocab or model.merges")
  for (const [token, id] of Object.entries(model.vocab))
    if (!isId(id)) throw badTokenizer(path, `gives the token ${show(token)} the id ${show(id)}`)
  const { vocab } = model
  // Old files have the unknown token "" if the vocabulary contains all bytes, so that nothing is unknown.
  const nothingUnknown = model.unk_token === "" && byteCharacters.every((byte) => Object.hasOwn(vocab, byte))
  if (typeof model.unk_token === "string" && !nothingUnknown && !Object.hasOwn(vocab, model.unk_token))
    throw badTokenizer(path, `names the unknown token ${show(model.unk_token)} but has no id for it`)
  if (!Array.isArray(added)) throw badTokenizer(path, "lacks added_tokens")
  for (const token of added)
    if (!isObject(token) || !isId(token.id) || typeof token.content !== "string" || token.content === "")
      throw badTokenizer(path, `has a malformed added token: ${show(token)}`)
}

function isId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < idLimit
}

function show(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 100)
}

/** Ids by token, as written in tokenizer.json. */
export function idsOf({ model, added_tokens: added }: TokenizerJson): Map<string, number> {
  return new Map([...Object.entries(model.vocab), ...added.map(({ content, id }) => [content, id] as const)])
}

/** Highest id plus one. */
export function countIds(json: TokenizerJson): number {
  let highest = -1
  for (const id of idsOf(json).values()) highest = Math.max(highest, id)
  return highest + 1
}
