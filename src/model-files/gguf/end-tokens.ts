import { ggufFamily } from "./families.ts"
import type { GgufValue } from "./metadata.ts"

/** Ids of the tokens that end a completion: of the text, of a turn, and of a message with tool calls. The end of the text is the first. */
export function endTokens(metadata: ReadonlyMap<string, GgufValue>): number[] {
  const id = (key: string) => metadata.get(`tokenizer.ggml.${key}_token_id`)
  const ends = [id("eos"), id("eot") ?? endOfTurn(metadata), id("eom")]
  return [...new Set(ends)].filter((end) => typeof end === "number")
}

/** Id of the architecture's end of a turn, by its text, as llama.cpp finds it. */
function endOfTurn(metadata: ReadonlyMap<string, GgufValue>): number | undefined {
  const name = ggufFamily(metadata)?.endOfTurn
  const tokens = metadata.get("tokenizer.ggml.tokens")
  const at = name !== undefined && Array.isArray(tokens) ? tokens.indexOf(name) : -1
  return at >= 0 ? at : undefined
}
