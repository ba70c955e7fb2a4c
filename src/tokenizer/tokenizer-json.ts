import { GigpoError } from "../util/errors.ts"
import { byteCharacters } from "./byte-level.ts"
import { badTokenizer, isObject, type JsonObject } from "./files.ts"

/** What is relied on in tokenizer.json; `openBpe` checks the rest. */
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

/** Ids are indices of arrays: a corrupt one must not make a huge array. */
const idLimit = 2 ** 24

/** Fails with BAD_TOKENIZER where the file does not hold tokens and their ids. */
export function checkTokenizerJson(json: JsonObject, path: string): asserts json is TokenizerJson {
  const { model, added_tokens: added } = json
  if (!isObject(model)) throw badTokenizer(path, "lacks model")
  if (model.type !== undefined && model.type !== "BPE")
    throw new GigpoError(
      "BAD_TOKENIZER",
      `${path} holds a model of the kind ${show(model.type)}; take a model whose tokenizer is BPE, the kind that is supported`,
    )
  if (!isObject(model.vocab) || !Array.isArray(model.merges))
    throw badTokenizer(path, "lacks model.vocab or model.merges")
  for (const [token, id] of Object.entries(model.vocab))
    if (!isId(id)) throw badTokenizer(path, `gives the token ${show(token)} the id ${show(id)}`)
  const { vocab } = model
  // Early files name "" where a vocabulary of all bytes leaves nothing unknown.
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

/** Every token, as it is written there, with its id. */
export function idsOf({ model, added_tokens: added }: TokenizerJson): Map<string, number> {
  return new Map([...Object.entries(model.vocab), ...added.map(({ content, id }) => [content, id] as const)])
}

/** Highest id plus one. */
export function countIds(json: TokenizerJson): number {
  let highest = -1
  for (const id of idsOf(json).values()) highest = Math.max(highest, id)
  return highest + 1
}
