import type { Turn } from "./environment.ts"

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
