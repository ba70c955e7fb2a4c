import { rememberTurns, type Thinking } from "../agent.ts"
import type { Observation, Turn } from "../environment.ts"
import { recentTurns } from "../memory.ts"
import type { Resolved } from "../options.ts"
import { resultOf } from "./information.ts"
import type { SearchOptions } from "./options.ts"
import type { SearchTask } from "./questions.ts"

type PromptOptions = Pick<Resolved<SearchOptions>, "history" | "rules" | "thinking"> & {
  readonly memory: SearchOptions["memory"]
}

/**
 * What the model reads: the question, what it has searched for and found so far, and its two choices. The newest result stands in
 * the history, beside the search that it answers.
 */
export function promptText(
  { question }: SearchTask,
  history: readonly Turn[],
  now: Observation,
  options: PromptOptions,
): string {
  if (!options.rules) return barePrompt(question, history, now, options)
  const past = pastText(history, now, options)
  const steps = `${history.length} ${history.length === 1 ? "step" : "steps"}`
  return [
    `You answer questions with the help of a search engine. Your question: ${question}`,
    ...(history.length === 0
      ? []
      : [`You have taken ${steps} so far.${past === "" ? "" : ` What you did, and what came of it:\n${past}`}`]),
    `${thoughts[options.thinking]} do one of two things:
(1) If you need to know more, search: write your query inside <search> </search>. What is found will be shown inside <information> </information>.
(2) If you know enough, answer: write the answer alone, in a few words, inside <answer> </answer>.`,
  ].join("\n\n")
}

const thoughts: Readonly<Record<Thinking, string>> = {
  required: "First think about what you know and what is missing, inside <think> </think>. Then",
  optional: "You may first think about what you know and what is missing, inside <think> </think>. Then",
  off: "Now",
}

/** One line a step, `Step 1:<search>query</search> <information>…`, as verl-agent's SearchMemory writes them. */
function pastText(history: readonly Turn[], now: Observation, options: PromptOptions): string {
  if (history.length === 0) return ""
  if (options.memory) return [rememberTurns(history, options), now.text].join("\n").trim()
  return recentTurns(history, options.history)
    .map(({ step, action }) => `Step ${step}:${action} ${foundAfter(step, history, now).text}\n`)
    .join("\n")
    .trimEnd()
}

/** Question, searches and what they found, as bare as can be. */
function barePrompt(question: string, history: readonly Turn[], now: Observation, options: PromptOptions): string {
  const past = recentTurns(history, options.history).map(({ step, action }) => {
    const found = foundAfter(step, history, now).text
    return `${action}\n${(resultOf(found) ?? found).trim()}`
  })
  return [question, ...past].join("\n").trim()
}

/** What was seen after a step, which counts from 1. */
function foundAfter(step: number, history: readonly Turn[], now: Observation): Observation {
  return history[step]?.observation ?? now
}
