import { inspect, types } from "node:util"
import { reason } from "../environment/contract.ts"
import type { Message } from "../environment/environment.ts"
import type { ChatCodec, Prompt } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { tokenOutside } from "./check-step.ts"
import { RolloutFault } from "./faults.ts"

// A GigpoError of the tokenizer (messages that it rejects) fails the episode. Any other error of the tokenizer ends the rollout.

export async function encodePrompt(
  tokenizer: ChatCodec,
  messages: readonly Message[],
  vocabularySize: number,
): Promise<Prompt> {
  let prompt: Prompt
  try {
    prompt = await tokenizer.encodeChat(messages)
  } catch (error) {
    throw thrown("encodeChat", error)
  }
  const tokens = prompt?.tokens
  if (!types.isInt32Array(tokens) || tokens.length === 0)
    throw broken(`encodeChat() gave ${inspect(prompt, { depth: 0 })}; give { tokens }, an Int32Array that is not empty`)
  const outside = tokenOutside(tokens, vocabularySize)
  if (outside !== undefined)
    throw broken(`encodeChat() gave token ${outside}, outside the policy's vocabulary of ${vocabularySize}`)
  return prompt
}

/** Text of a completion, without special tokens. */
export function decodeCompletion(tokenizer: ChatCodec, completion: Int32Array): string {
  let text: string
  try {
    text = tokenizer.decode(completion, { skipSpecial: true })
  } catch (error) {
    throw thrown("decode", error)
  }
  if (typeof text !== "string") throw broken(`decode() gave ${inspect(text, { depth: 0 })}; give a string`)
  return text
}

function thrown(method: string, error: unknown): unknown {
  return GigpoError.is(error) ? error : broken(`${method}() threw: ${reason(error)}`, error)
}

function broken(rule: string, cause?: unknown): RolloutFault {
  return new RolloutFault(new GigpoError("BAD_TOKENIZER", `The tokenizer's ${rule}.`, { cause }))
}
