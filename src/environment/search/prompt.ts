import type { PromptSettings, Thinking } from "../agent.ts"
import type { Observation, PastStep } from "../environment.ts"
import { type NumberedTurn, recentTurns } from "../memory/recent.ts"
import { resultOf } from "./information.ts"
import type { SearchSettings } from "./options.ts"
import type { SearchTask } from "./questions.ts"

type PromptOptions = PromptSettings<Pick<SearchSettings, "history" | "rules" | "thinking">>

/**
 * Prompt text: the question, the searches and results so far, and the two kinds of actions. The newest result is part of the history, next
 * to its search. Without rules the prompt contains only question, searches and results.
 */
export function promptText(
  { question }: SearchTask,
  history: readonly PastStep[],
  now: Observation,
  options: PromptOptions,
): string {
  if (!options.rules) {
    const write = ({ action }: NumberedTurn, result: string) => `${action}\n${result}`
    const past = pastParts(history, now, options, (text) => (resultOf(text) ?? text).trim(), write)
    return [question, ...past].join("\n").trim()
  }
  // One line a step, as verl-agent's SearchMemory writes them.
  const write = ({ step, action }: NumberedTurn, result: string) => `Step ${step}:${action} ${result}\n`
  const past = pastParts(history, now, options, (text) => text, write)
  const steps = `${history.length} ${history.length === 1 ? "step" : "steps"}`
  const lead = options.history === 0 && !options.memory ? "The last one found" : "What you did, and what came of it"
  return [
    `You answer questions with the help of a search engine. Your question: ${question}`,
    ...(history.length === 0
      ? []
      : [`You have taken ${steps} so far.${past.length > 0 ? ` ${lead}:\n${past.join("\n").trimEnd()}` : ""}`]),
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

/** Past actions with their results. The newest result is last, and always shown exactly once. */
function pastParts(
  history: readonly PastStep[],
  now: Observation,
  options: PromptOptions,
  show: (found: string) => string,
  write: (turn: NumberedTurn, result: string) => string,
): string[] {
  if (history.length === 0) return []
  const turns = options.memory ? [] : recentTurns(history, options.history)
  // The result of a step is the observation of the next one.
  if (turns.length > 0) return turns.map((turn) => write(turn, show((history[turn.step]?.observation ?? now).text)))
  return [options.memory?.(history) ?? "", show(now.text)].filter((part) => part !== "")
}
