import { field } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { PastStep } from "../environment.ts"
import type { PromptMemory } from "./memory.ts"

/** Past step with its number, from 1 at the start of the episode. */
export interface NumberedTurn extends PastStep {
  readonly step: number
}

/** The last `length` steps of the history, or all. */
export function recentTurns(history: readonly PastStep[], length: number | "all"): NumberedTurn[] {
  const skipped = length === "all" ? 0 : Math.max(history.length - length, 0)
  return history.slice(skipped).map((turn, index) => ({ ...turn, step: skipped + index + 1 }))
}

/**
 * Text of past steps with one line per step, observation and action, in the format of verl-agent (agent_system/memory/memory.py,
 * SimpleMemory).
 */
export function formatTurns(turns: readonly NumberedTurn[]): string {
  return turns
    .map(({ step, observation, action }) => `[Observation ${step}: '${observation.text}', Action ${step}: '${action}']`)
    .join("\n")
}

export function historyField(fallback: number | "all") {
  const fits = (value: unknown) =>
    value === "all" || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1000)
  return field(fallback, 'Number of past steps that the prompt shows, or "all".', (value) =>
    fits(value) ? undefined : 'must be an integer from 0 to 1000 or "all"',
  )
}

export const recentFields = { history: historyField(2) }

/** Options of `recentMemory`. */
export type RecentOptions = OptionsOf<typeof recentFields>

/** Prompt memory of the last steps, one line each, in the same format for every environment. */
export function recentMemory(given: RecentOptions = {}): PromptMemory {
  const { history: length } = readOptions("recentMemory", given, recentFields)
  return { name: "recent", start: () => ({ render: (history) => formatTurns(recentTurns(history, length)) }) }
}
