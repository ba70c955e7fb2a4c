import { isObject, type JsonObject } from "./files.ts"

const roles = ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"]

/** Special tokens of tokenizer_config.json by role (`eos_token`, `bos_token`, …), as templates expect them. */
export function specialTokens(config: JsonObject): Record<string, string> {
  const tokens: Record<string, string> = {}
  for (const role of roles) {
    const value = config[role]
    const content = isObject(value) ? value.content : value
    if (typeof content === "string") tokens[role] = content
  }
  return tokens
}

/** Tokens that close a message in the chat formats of Qwen (ChatML) and Llama 3. */
const turnEnds = ["<|im_end|>", "<|eot_id|>"]

/**
 * Ids that may end an assistant's turn: the tokenizer's eos token, the model's eos ids (generation_config.json, else config.json), and the
 * token with which the chat template ends messages. The last is needed because base models often declare only their end-of-text token.
 */
export function endOfTurnIds(
  idOf: (token: string) => number | undefined,
  eosToken: string | undefined,
  modelEos: unknown,
  chatTemplate: string | undefined,
): number[] {
  const tokens = turnEnds.filter((token) => chatTemplate?.includes(token))
  if (eosToken !== undefined) tokens.unshift(eosToken)
  const ids = [...tokens.map(idOf), ...(Array.isArray(modelEos) ? modelEos : [modelEos])]
  return [...new Set(ids.filter((id) => Number.isInteger(id)))]
}
