import { boolean, integer } from "../../options/field.ts"
import type { Observation } from "../environment.ts"
import { withoutThought } from "../tags.ts"
import type { MemoryContext, ModelCallOptions } from "./memory.ts"

/** Options of memories that ask the policy. */
export const askFields = {
  maxTokens: integer(undefined, "Tokens of what the memory asks the policy for.", {
    min: 1,
    defaultText: "rollout.maxCompletionTokens",
  }),
  learn: boolean(true, "Whether what the policy says to that is learned from, as its actions are."),
}

/** Asks the policy in one message, of these paragraphs, and leaves its thought out. */
export async function askFor(
  { ask }: MemoryContext,
  paragraphs: readonly string[],
  options: ModelCallOptions,
): Promise<string> {
  return withoutThought(await ask([{ role: "user", content: paragraphs.join("\n\n") }], options))
}

/** What an episode began with, for prompts that show no other past. */
export function opening(history: readonly { readonly observation: Observation }[], now: Observation): string {
  return (history[0]?.observation ?? now).text
}
