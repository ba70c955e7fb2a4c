import type { CallMessage } from "./call.ts"

/** Last input of the model: results of tools, or the user's message. */
export function lastInput(messages: readonly CallMessage[]): string {
  const behind = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
  const results = behind.filter(({ role }) => role === "tool")
  const input = results.length > 0 ? results : behind.filter(({ role }) => role === "user").slice(-1)
  return input.map(({ content }) => content).join("\n")
}
