import type { PromptSettings, Thinking } from "../agent.ts"
import type { Observation, PastStep } from "../environment.ts"
import { recentTurns } from "../memory/recent.ts"
import type { SqlSettings } from "./options.ts"

/** Prompt text: tables and question from the first observation, the queries and results so far, and the two kinds of actions. */
export function promptText(
  history: readonly PastStep[],
  now: Observation,
  { rules, thinking, history: length, memory }: PromptSettings<Pick<SqlSettings, "rules" | "thinking" | "history">>,
): string {
  const questionText = (history[0]?.observation ?? now).text
  const past = memory
    ? [memory(history)]
    : recentTurns(history, length).map(({ step, action }) => `${action}\n${(history[step]?.observation ?? now).text}`)
  if (!rules) return [questionText, ...past].join("\n\n")
  return [
    "You answer a question about a SQLite database with one SQL statement.",
    questionText,
    ...(past.length > 0 ? ["What you asked the database, and what it gave:", ...past] : []),
    `${thoughts[thinking]} do one of two things:
(1) If you need to see more of the database, write a SELECT inside <sql> </sql>; you will be shown what it gives.
(2) Else write the one SELECT whose result is the answer inside <answer> </answer>.`,
  ].join("\n\n")
}

const thoughts: Readonly<Record<Thinking, string>> = {
  required: "First think about it inside <think> </think>. Then",
  optional: "You may first think about it inside <think> </think>. Then",
  off: "Now",
}
