import type { RecordedStep } from "./recorded.ts"

/** Row of an outline: a step, or consecutive steps with the same action in the same state. */
export interface OutlineRow {
  /** Index of the first step. */
  readonly first: number
  readonly count: number
  /** First step of the episode in the same state, if it is earlier. */
  readonly sameAs?: number
}

/** Minimum number of consecutive equal steps that are one row. */
const leastFolded = 3

/** Outline of an episode. */
export function outlineOf(steps: readonly Pick<RecordedStep, "stepGroup" | "action">[]): OutlineRow[] {
  const seen = new Map<number, number>()
  const rows: OutlineRow[] = []
  for (let first = 0; first < steps.length; ) {
    const { stepGroup, action } = steps[first]!
    let end = first + 1
    while (end < steps.length && steps[end]!.stepGroup === stepGroup && steps[end]!.action === action) end++
    const sameAs = seen.get(stepGroup)
    if (sameAs === undefined) seen.set(stepGroup, first)
    const count = end - first >= leastFolded ? end - first : 1
    rows.push({ first, count, ...(sameAs !== undefined && { sameAs }) })
    first += count
  }
  return rows
}
