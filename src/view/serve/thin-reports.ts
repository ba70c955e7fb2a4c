import { bestOf } from "../../runs/best.ts"
import type { IterationReport } from "../../runs/report.ts"

/**
 * Every so many reports, and of those with an evaluation. The first, the last, the best evaluation, and those with warnings or the reason of
 * stopping are always kept.
 */
export function thinReports(reports: readonly IterationReport[], every: number): readonly IterationReport[] {
  if (every <= 1) return reports
  const best = bestOf(reports)?.iteration
  const counts = { plain: 0, evaluated: 0 }
  return reports.filter(({ iteration, evaluation, warnings, stopped }, at) => {
    const isDue = counts[evaluation ? "evaluated" : "plain"]++ % every === 0
    return isDue || at === 0 || at === reports.length - 1 || iteration === best || warnings || stopped !== undefined
  })
}
