import type { IterationReport } from "../../../runs/report.ts"
import { visible } from "../../../util/visible.ts"
import type { RunStore } from "../run-store.ts"

/** A run that is compared, with what it has reported. */
export interface ShownRun {
  readonly id: string
  readonly name: string
  /** Among all runs: gives its colour and dash. */
  readonly place: number
  readonly reports: readonly IterationReport[]
}

export async function shownRuns(store: RunStore): Promise<readonly ShownRun[]> {
  return await Promise.all(
    store.shown.map(async ({ id, name }) => {
      const place = store.runs.findIndex((run) => run.id === id)
      return { id, name: visible(name), place, reports: await store.reports(id) }
    }),
  )
}
