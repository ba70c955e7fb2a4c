import type { IterationReport } from "../../runs/report.ts"
import { averaged, mean, standardError } from "./overview.ts"

/** Comparison of the best run with another run, at the last iteration that both have. */
export interface Comparison {
  /** Index of the best run, and of the other. */
  readonly best: number
  readonly other: number
  readonly metric: (typeof compared)[number]
  /** Means of the iterations from `from` to `to`, of the best run and of the other. */
  readonly means: readonly [best: number, other: number]
  readonly from: number
  readonly to: number
  /** First iteration since which the mean of the best run has been higher; absent if the difference may be chance. */
  readonly since?: number
}

/** Metrics by which runs are compared: the first that all of them have. */
const compared = ["episode/success", "episode/return"] as const

/**
 * Comparisons of the best of several runs with each of the others, from the best to the worst; empty if they have no common metric. Means
 * are of at most `averaged` iterations; a difference is clear from two standard errors, by the variation between iterations.
 */
export function compareRuns(runs: readonly (readonly IterationReport[])[]): readonly Comparison[] {
  const metric = compared.find((name) => runs.every((reports) => reports.some((one) => hasValue(one, name))))
  if (metric === undefined || runs.length < 2) return []
  const values = runs.map(
    (reports) =>
      new Map(reports.filter((one) => hasValue(one, metric)).map((one) => [one.iteration, one.metrics[metric]!])),
  )
  const to = Math.min(...values.map((own) => [...own.keys()].at(-1)!))
  const from = Math.max(1, to - averaged + 1)
  const newest = values.map((own) => windowOf(own, to))
  // A run that was thinned, or began later, has no values here.
  const known = newest.flatMap((own, run) => (own.length > 0 ? [{ run, own, mean: mean(own) }] : []))
  const [best, ...others] = known.toSorted((a, b) => b.mean - a.mean)
  return others.map(({ run, own, mean: value }) => {
    const error = standardError(best!.own, own)
    const isClear = error !== undefined && best!.mean - value > 2 * error
    const since = isClear ? sinceWhen(values[best!.run]!, values[run]!, to) : undefined
    return {
      ...{ best: best!.run, other: run, metric, means: [best!.mean, value] as const, from, to },
      ...(since !== undefined && { since }),
    }
  })
}

function hasValue({ metrics }: IterationReport, name: string): boolean {
  return Number.isFinite(metrics[name])
}

type Values = ReadonlyMap<number, number>

/** Values of the newest iterations up to `to`, at most `averaged`. */
function windowOf(values: Values, to: number): number[] {
  return Array.from({ length: averaged }, (_, back) => values.get(to - averaged + 1 + back)).filter(
    (value) => value !== undefined,
  )
}

/** First iteration from which on all means of `best` are higher than those of `other`. */
function sinceWhen(best: Values, other: Values, to: number): number {
  const common = [...best.keys()].filter((iteration) => iteration <= to && other.has(iteration)).sort((a, b) => b - a)
  let since = to
  for (const iteration of common) {
    if (!(mean(windowOf(best, iteration)) > mean(windowOf(other, iteration)))) break
    since = iteration
  }
  return since
}
