import { readAction, type Thinking } from "../agent.ts"
import type { ParsedAction } from "../environment.ts"

export interface ReplyForm {
  readonly reply: "json" | "tags"
  readonly thinking: Thinking
}

/** The action of an unreadable reply: nothing happens, though the step counts. */
export const noAction = "none"

/** Reads one of the actions from a reply. Never throws. */
export function readCardAction(reply: string, actions: readonly string[], form: ReplyForm): ParsedAction {
  if (form.reply === "json") return readJsonAction(reply, actions)
  const { action, valid } = readAction(reply, { tail: 30, thinking: form.thinking })
  return actions.includes(action) ? { action, valid } : { action: noAction, valid: false }
}

/**
 * verl-agent's reading (env_package/gym_cards/projection.py): of the lower-cased text from `"action":` on, whatever JSON it
 * is or is not, exactly one action must be part. Without that key only the last character is looked at, as Python's
 * `find` then says -1. `10` is found first and removed, so that it is not a 1 as well.
 */
function readJsonAction(reply: string, actions: readonly string[]): ParsedAction {
  const lower = reply.toLowerCase()
  const key = lower.indexOf('"action":')
  let text = key < 0 ? lower.slice(-1) : lower.slice(key)
  const found = new Set<string>()
  if (actions.includes("10") && text.includes("10")) {
    found.add("10")
    text = text.replaceAll("10", "")
  }
  for (const action of actions) if (text.includes(action)) found.add(action)
  const [action] = found
  return action !== undefined && found.size === 1 ? { action, valid: true } : { action: noAction, valid: false }
}

/** A reply that says nothing but the action, in the fewest words that are valid. */
export function writeReply(action: string, thought: string, { reply, thinking }: ReplyForm): string {
  if (reply === "json") return `{"action": "${action}"}`
  return `${thinking === "required" ? `<think>${thought}</think>` : ""}<action>${action}</action>`
}
