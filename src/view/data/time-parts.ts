import type { IterationReport } from "../../runs/report.ts"

/** Parts of the time of each iteration. */
export interface TimeParts {
  readonly iterations: readonly number[]
  /** Parts in order of execution; [parts][iterations] seconds. */
  readonly parts: readonly { readonly name: string; readonly seconds: readonly number[] }[]
}

/** Time metrics that are not parts of an iteration. */
const others = new Set(["time/iteration", "time/run", "time/tokens-per-second"])

/**
 * Seconds of each part: measured parts ("time/rollout", …), the rest of "time/iteration" ("other"), and the time of "time/run" between
 * iterations ("between": evaluation, checkpoints). Parts that never take time are omitted.
 */
export function timeParts(reports: readonly IterationReport[]): TimeParts {
  const worked = reports
    .map((report, at) => ({ metrics: report.metrics, iteration: report.iteration, before: reports[at - 1]?.metrics }))
    .filter(({ metrics }) => metrics["time/iteration"] !== undefined || measured(metrics) > 0)
  const names = [...new Set(worked.flatMap(({ metrics }) => Object.keys(metrics).filter(isPart)))]
  const parts = names.map((name) => ({
    name: name.slice("time/".length),
    seconds: worked.map(({ metrics }) => metrics[name] ?? 0),
  }))
  const other = worked.map(({ metrics }) => Math.max(whole(metrics) - measured(metrics), 0))
  const between = worked.map(({ metrics, before }) => {
    const now = metrics["time/run"]
    return now === undefined ? 0 : Math.max(now - (before?.["time/run"] ?? 0) - whole(metrics), 0)
  })
  const all = [...parts, { name: "other", seconds: other }, { name: "between", seconds: between }]
  return {
    iterations: worked.map(({ iteration }) => iteration),
    parts: all.filter(({ seconds }) => seconds.some((second) => second > 1e-3)),
  }
}

function isPart(name: string): boolean {
  return name.startsWith("time/") && !others.has(name)
}

function whole(metrics: IterationReport["metrics"]): number {
  return metrics["time/iteration"] ?? measured(metrics)
}

function measured(metrics: IterationReport["metrics"]): number {
  return Object.entries(metrics).reduce((sum, [name, value]) => sum + (isPart(name) ? value : 0), 0)
}

/** Mean seconds of each part, and share of the total. */
export function meanParts({ iterations, parts }: TimeParts): readonly { name: string; mean: number; share: number }[] {
  const sums = parts.map(({ seconds }) => seconds.reduce((sum, second) => sum + second, 0))
  const all = sums.reduce((sum, one) => sum + one, 0)
  return parts.map(({ name }, part) => ({
    name,
    mean: sums[part]! / Math.max(iterations.length, 1),
    share: all > 0 ? sums[part]! / all : 0,
  }))
}
