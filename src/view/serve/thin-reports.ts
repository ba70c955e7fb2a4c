import { bestOf } from "../../runs/best.ts"
import type { IterationReport } from "../../runs/report.ts"

/**
 * Every so many reports, and of those with an evaluation. The first, the last, the best evaluation, and those with warnings, a resumption or the
 * reason of stopping are always kept.
 */
export function thinReports(reports: readonly IterationReport[], every: number): readonly IterationReport[] {
  if (every <= 1) return reports
  const best = bestOf(reports)?.iteration
  const counts = { plain: 0, evaluated: 0 }
  return reports.filter(({ iteration, evaluation, warnings, stopped, resumed }, at) => {
    const isDue = counts[evaluation ? "evaluated" : "plain"]++ % every === 0
    const isEvent = iteration === best || warnings || resumed || stopped !== undefined
    return isDue || isEvent || at === 0 || at === reports.length - 1
  })
}
