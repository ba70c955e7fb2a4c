import type { IterationReport } from "../../../runs/report.ts"
import { visible } from "../../../util/visible.ts"
import type { RunStore } from "../run-store.ts"

/** Compared run with its reports. */
export interface ShownRun {
  readonly id: string
  readonly name: string
  /** Index among all runs; determines colour and dash. */
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
