import { visible } from "../../../util/visible.ts"
import type { MarkedRun } from "../../data/curves.ts"
import type { RunStore } from "../run-store.ts"

/** Compared run with its reports. */
export interface ShownRun extends MarkedRun {
  readonly id: string
  readonly name: string
  /** Index among all runs; determines colour and dash. */
  readonly place: number
}

export async function shownRuns(store: RunStore): Promise<readonly ShownRun[]> {
  return await Promise.all(
    store.shown.map(async ({ id, name, checkpoints = [] }) => {
      const place = store.runs.findIndex((run) => run.id === id)
      return { id, name: visible(name), place, checkpoints, reports: await store.reports(id) }
    }),
  )
}
