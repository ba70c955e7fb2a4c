import { field } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Turn } from "../environment.ts"
import type { Memory } from "./memory.ts"

/** Past steps with their numbers, which count from 1 at the episode's start. */
export interface NumberedTurn extends Turn {
  readonly step: number
}

/** The last steps of the past, or "all". */
export function recentTurns(history: readonly Turn[], length: number | "all"): NumberedTurn[] {
  const skipped = length === "all" ? 0 : Math.max(history.length - length, 0)
  return history.slice(skipped).map((turn, index) => ({ ...turn, step: skipped + index + 1 }))
}

/**
 * One line a step, in the form that verl-agent shows them (agent_system/memory/memory.py, SimpleMemory): what was seen, and
 * what was done then.
 */
export function formatTurns(turns: readonly NumberedTurn[]): string {
  return turns
    .map(({ step, observation, action }) => `[Observation ${step}: '${observation.text}', Action ${step}: '${action}']`)
    .join("\n")
}

export function historyField(fallback: number | "all") {
  const fits = (value: unknown) =>
    value === "all" || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1000)
  return field(fallback, 'Past steps that the prompt shows, or "all".', (value) =>
    fits(value) ? undefined : 'must be a whole number from 0 to 1000 or "all"',
  )
}

export const recentFields = { length: historyField(2) }

/** Options of `recent`. */
export type RecentOptions = OptionsOf<typeof recentFields>

/** The last steps, one line each, the same in every environment. */
export function recent(given: RecentOptions = {}): Memory {
  const { length } = readOptions("recent", given, recentFields)
  return { name: "recent", begin: () => ({ tell: (history) => formatTurns(recentTurns(history, length)) }) }
}
