import { type Inlined, inlinedParts } from "../data/inlined.ts"
import { packPart } from "./report-html.ts"
import { thinReports } from "./thin-reports.ts"

interface PartsOf extends Pick<Inlined, "evaluations"> {
  readonly inlinedRuns: Inlined["runs"]
  readonly recorded: number
  /** Size from which reports are left out. */
  readonly most: number
}

/** Packed parts of a report besides the groups, with the iterations of the reports if some are left out. */
export async function partsOf(
  { inlinedRuns, evaluations = [], recorded, most }: PartsOf,
  signal: AbortSignal | undefined,
): Promise<{ parts: string[]; iterations?: NonNullable<Inlined["made"]>["iterations"] }> {
  const all = inlinedRuns.reduce((sum, { reports }) => sum + reports.reports.length, 0)
  for (let every = 1; ; every *= 2) {
    const runs = inlinedRuns.map((run) => ({
      ...run,
      reports: { ...run.reports, reports: thinReports(run.reports.reports, every) },
    }))
    const shown = runs.reduce((sum, { reports }) => sum + reports.reports.length, 0)
    const iterations = shown < all ? { shown, all } : undefined
    const made = { time: new Date().toISOString(), recorded, ...(iterations && { iterations }) }
    const parts: string[] = []
    let size = 0
    for (const [name, value] of inlinedParts({ runs, evaluations, made })) {
      signal?.throwIfAborted()
      const part = await packPart(name, value)
      if (name.startsWith("reports/")) size += part.length
      parts.push(part)
    }
    if (size <= most || every >= all) return { parts, ...(iterations && { iterations }) }
  }
}
