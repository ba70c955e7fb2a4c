import { badField } from "../chat/api-error.ts"
import { canonical } from "../json/canonical.ts"
import { isObject } from "../options/read.ts"
import { type Conversation, conversation, fieldsOf, talk } from "./conversation.ts"

/** Preference pair: two conversations with the same prompt. */
export interface Pair {
  readonly chosen: Conversation
  readonly rejected: Conversation
}

/** Whether a line of data is a preference pair. */
export function isPair(line: unknown): boolean {
  return isObject(line) && ["chosen", "rejected", "preferred_output"].some((key) => line[key] !== undefined)
}

/**
 * Reads a preference pair from a line of data: `{ prompt or messages, chosen, rejected }`, the format of Hugging Face, or `{ input: { messages,
 * tools }, preferred_output, non_preferred_output }`, the format of OpenAI. Chosen and rejected are a text, a message or several messages. If
 * neither starts with a message of the assistant, they are whole conversations, and their common messages are the prompt.
 */
export function readPair(line: unknown): Pair {
  const given = fieldsOf(line)
  const { input, preferred_output: preferred, non_preferred_output: other } = given
  const beside = isObject(input) ? { ...given, ...input } : given
  const { chosen = preferred, rejected = other, messages, prompt = messages } = beside
  for (const [name, value] of Object.entries({ chosen, rejected }))
    if (value === undefined || value === null) throw badField(name, "is missing; a pair has chosen and rejected")
  const [one, two] = [talk(chosen, "chosen", "assistant"), talk(rejected, "rejected", "assistant")]
  if (canonical(one) === canonical(two)) throw badField("rejected", "equals chosen; leave such pairs out")
  if (!begins(one) && !begins(two)) {
    const shared = one.findIndex((message, at) => canonical(message) !== canonical(two[at] ?? null))
    const from = shared < 0 ? one.length : shared
    for (const rest of [one.slice(from), two.slice(from)])
      if (rest.length > 0 && !begins(rest))
        throw badField(
          "rejected",
          `has another prompt than chosen: they first differ at message ${from}, which is not of the assistant`,
        )
    return { chosen: conversation(beside, one, from, "all"), rejected: conversation(beside, two, from, "all") }
  }
  if (prompt === undefined || prompt === null)
    throw badField("prompt", "is missing; give the prompt of the completions")
  const promptMessages = talk(prompt, "prompt", "user")
  const on = (completion: readonly unknown[]) =>
    conversation(beside, [...promptMessages, ...completion], promptMessages.length, "all")
  return { chosen: on(one), rejected: on(two) }
}

/** Whether messages start with one of the assistant. */
function begins([first]: readonly unknown[]): boolean {
  return isObject(first) && first.role === "assistant"
}
