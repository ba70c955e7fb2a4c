import type { IterationReport } from "../../runs/report.ts"
import { averaged, mean, standardError } from "./overview.ts"

/** Comparison of two runs, at the last iteration that both have. */
export interface Comparison {
  /** Index of the run that is better there, and of the other. */
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
 * Comparisons of the best of several runs, at the last iteration that all have, with each of the others, from the best to the worst; empty if
 * they have no common metric. Means are of at most `averaged` iterations; a difference is clear from two standard errors, by the variation between iterations.
 */
export function compareRuns(runs: readonly (readonly IterationReport[])[]): readonly Comparison[] {
  const metric = compared.find((name) => runs.every((reports) => reports.some((one) => hasValue(one, name))))
  if (metric === undefined || runs.length < 2) return []
  const values = runs.map(
    (reports) =>
      new Map(reports.filter((one) => hasValue(one, metric)).map((one) => [one.iteration, one.metrics[metric]!])),
  )
  const lastOf = (run: number) => [...values[run]!.keys()].at(-1)!
  const common = Math.min(...runs.map((_, run) => lastOf(run)))
  // A run whose reports were thinned may have no values there.
  const known = [...runs.keys()].flatMap((run) => {
    const own = windowOf(values[run]!, common)
    return own.length > 0 ? [{ run, mean: mean(own) }] : []
  })
  const [best, ...others] = known.toSorted((a, b) => b.mean - a.mean)
  return others.map(({ run }) => {
    const to = Math.min(lastOf(best!.run), lastOf(run))
    const pair = [best!.run, run].map((one) => ({ run: one, own: windowOf(values[one]!, to) }))
    const [one, other] = pair.toSorted((a, b) => mean(b.own) - mean(a.own)) as [(typeof pair)[0], (typeof pair)[0]]
    const means = [mean(one.own), mean(other.own)] as const
    const error = standardError(one.own, other.own)
    const isClear = error !== undefined && means[0] - means[1] > 2 * error
    return {
      ...{ best: one.run, other: other.run, metric, means, from: Math.max(1, to - averaged + 1), to },
      ...(isClear && { since: sinceWhen(values[one.run]!, values[other.run]!, to) }),
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
