import { flag, whole } from "../../options/field.ts"
import type { Observation } from "../environment.ts"
import { withoutThought } from "../tags.ts"
import type { AskOptions, MemoryContext } from "./memory.ts"

/** Options of memories that ask the policy. */
export const askFields = {
  maxTokens: whole(undefined, "Tokens of what the memory asks the policy for.", {
    least: 1,
    otherwise: "rollout.maxReplyTokens",
  }),
  learn: flag(true, "Whether what the policy says to that is learned from, as its actions are."),
}

/** Asks the policy in one message, of these paragraphs, and leaves its thought out. */
export async function askFor(
  { ask }: MemoryContext,
  paragraphs: readonly string[],
  options: AskOptions,
): Promise<string> {
  return withoutThought(await ask([{ role: "user", content: paragraphs.join("\n\n") }], options))
}

/** What an episode began with, for prompts that show no other past. */
export function opening(history: readonly { readonly observation: Observation }[], now: Observation): string {
  return (history[0]?.observation ?? now).text
}
