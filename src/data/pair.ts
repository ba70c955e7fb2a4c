import { badField } from "../chat/api-error.ts"
import { canonical } from "../json/canonical.ts"
import { isObject } from "../options/read.ts"
import { type Conversation, conversation, fieldsOf, talk } from "./conversation.ts"

/** Two ways on from one prompt, of which the first is preferred. */
export interface Pair {
  readonly chosen: Conversation
  readonly rejected: Conversation
}

/** Whether a line of data is one. */
export function isPair(line: unknown): boolean {
  return isObject(line) && ["chosen", "rejected", "preferred_output"].some((key) => line[key] !== undefined)
}

/**
 * A preference pair from a line of data: `{ prompt or messages, chosen, rejected }` as Hugging Face has it, or `{ input: { messages, tools },
 * preferred_output, non_preferred_output }` as OpenAI has it. What is chosen and rejected is a text, a message or several. Where both
 * begin with something else than a reply they are whole conversations, and what they share is the prompt.
 */
export function readPair(line: unknown): Pair {
  const given = fieldsOf(line)
  const { input, preferred_output: preferred, non_preferred_output: other } = given
  const beside = isObject(input) ? { ...given, ...input } : given
  const { chosen = preferred, rejected = other, messages, prompt = messages } = beside
  for (const [name, value] of Object.entries({ chosen, rejected }))
    if (value === undefined || value === null) throw badField(name, "is missing; a pair has chosen and rejected")
  const [one, two] = [talk(chosen, "chosen", "assistant"), talk(rejected, "rejected", "assistant")]
  if (canonical(one) === canonical(two)) throw badField("rejected", "says what chosen says; leave such pairs out")
  if (!begins(one) && !begins(two)) {
    const shared = one.findIndex((message, at) => canonical(message) !== canonical(two[at] ?? null))
    const from = shared < 0 ? one.length : shared
    for (const rest of [one.slice(from), two.slice(from)])
      if (rest.length > 0 && !begins(rest))
        throw badField(
          "rejected",
          `has another prompt than chosen: they first differ at message ${from}, which is no reply`,
        )
    return { chosen: conversation(beside, one, from, "all"), rejected: conversation(beside, two, from, "all") }
  }
  if (prompt === undefined || prompt === null) throw badField("prompt", "is missing; give what was replied to")
  const asked = talk(prompt, "prompt", "user")
  const on = (said: readonly unknown[]) => conversation(beside, [...asked, ...said], asked.length, "all")
  return { chosen: on(one), rejected: on(two) }
}

/** With a reply. */
function begins([first]: readonly unknown[]): boolean {
  return isObject(first) && first.role === "assistant"
}
