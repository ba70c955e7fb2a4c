import { bestOf } from "../../runs/best.ts"
import type { IterationReport } from "../../runs/report.ts"
import { findingsOf } from "./findings.ts"
import { nonFiniteOf } from "./scalars.ts"
import type { RunInfo } from "./source.ts"

/** Metrics of an overview, in order, by the names of tiles. */
export const overviewMetrics = {
  success: "episode/success",
  return: "episode/return",
  entropy: "policy/entropy",
  constant: "group/constant",
  valid: "action/valid",
  truncated: "completion/truncated",
  failed: "episode/failed",
  seconds: "time/iteration",
} as const
export type OverviewName = keyof typeof overviewMetrics

/** Development of a metric. */
export interface Development {
  /** Mean of the newest values, at most `averaged`. */
  readonly now: number
  /** Difference from the mean of as many first values; absent if there are too few values. */
  readonly change?: number
  /** Standard error of the change, by the variation within the first and within the newest values; absent if they are too few. */
  readonly error?: number
  /** Values over the run, at most `sparkLength`. */
  readonly spark: readonly number[]
}

/** Overview of a run: whether it learns, and whether something is wrong. */
export interface Overview {
  readonly metrics: { readonly [Name in OverviewName]?: Development }
  /** Evaluations: success rates, or mean returns without reported success. Absent without an evaluation. */
  readonly evaluation?: {
    readonly isReturn: boolean
    readonly best: number
    readonly bestIteration: number
    readonly last: number
    readonly lastIteration: number
    /** Whether the last success rate is below the best one, with 95 % intervals that do not overlap. */
    readonly fell?: true
    readonly spark: readonly number[]
  }
  /** Problems as sentences, the most important first, with the tile that each concerns. */
  readonly findings: readonly Finding[]
  /** Newest warnings of guards. */
  readonly warnings: readonly { readonly iteration: number; readonly text: string }[]
  /** Reason of early stopping. */
  readonly stopped?: string
}

export interface Finding {
  readonly tile?: OverviewName | "evaluation"
  readonly text: string
}

/** Number of iterations that are averaged, because single iterations are noisy. */
export const averaged = 5
const sparkLength = 60
const mostWarnings = 10

export function overviewOf(reports: readonly IterationReport[], settings: RunInfo["settings"]): Overview {
  const metrics = Object.fromEntries(
    Object.entries(overviewMetrics).flatMap(([name, metric]) => {
      const development = developmentOf(reports.map((report) => report.metrics[metric]).filter(isNumber))
      return development ? [[name, development]] : []
    }),
  ) as Overview["metrics"]
  const evaluation = evaluationsOf(reports)
  const warnings = reports.flatMap(({ iteration, warnings = [] }) => warnings.map((text) => ({ iteration, text })))
  const last = reports.at(-1)
  const about = { metrics, settings, warnings, last: last?.iteration ?? 0, nonFinite: last ? nonFiniteOf(last) : [] }
  return {
    metrics,
    ...(evaluation && { evaluation }),
    findings: findingsOf({ ...about, ...(evaluation && { evaluation }) }, last?.failures ?? []),
    warnings: warnings.slice(-mostWarnings),
    ...(last?.stopped !== undefined && { stopped: last.stopped }),
  }
}

function isNumber(value: unknown): value is number {
  return Number.isFinite(value)
}

function developmentOf(values: readonly number[]): Development | undefined {
  if (values.length === 0) return undefined
  const count = Math.min(averaged, Math.max(1, Math.floor(values.length / 2)))
  const [first, last] = [values.slice(0, count), values.slice(-count)]
  const now = mean(last)
  const error = standardError(first, last)
  return {
    now,
    ...(values.length > 1 && { change: now - mean(first) }),
    ...(error !== undefined && { error }),
    spark: thinned(values),
  }
}

/** Standard error of the difference of two means; undefined for fewer than three values of either. */
export function standardError(...samples: readonly (readonly number[])[]): number | undefined {
  if (samples.some(({ length }) => length < 3)) return undefined
  const variances = samples.map((values) => {
    const centre = mean(values)
    return values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1) / values.length
  })
  return Math.sqrt(variances.reduce((sum, variance) => sum + variance, 0))
}

function evaluationsOf(reports: readonly IterationReport[]): Overview["evaluation"] {
  const evaluated = reports.filter(({ evaluation }) => evaluation !== undefined)
  const best = bestOf(evaluated)
  const last = evaluated.at(-1)
  if (!best || !last) return undefined
  const isReturn = evaluated.every(({ evaluation }) => evaluation!.metrics.success === undefined)
  const value = ({ success, meanReturn }: NonNullable<IterationReport["evaluation"]>) =>
    isReturn ? meanReturn : success
  return {
    isReturn,
    best: value(best.evaluation),
    bestIteration: best.iteration,
    last: value(last.evaluation!),
    lastIteration: last.iteration,
    ...(!isReturn &&
      last.evaluation!.successInterval[1] < best.evaluation.successInterval[0] && { fell: true as const }),
    spark: thinned(evaluated.map(({ evaluation }) => value(evaluation!)).filter(isNumber)),
  }
}

/** Means of consecutive values, at most `sparkLength`, with four digits. */
function thinned(values: readonly number[]): number[] {
  const length = Math.min(values.length, sparkLength)
  return Array.from({ length }, (_, at) => {
    const [from, to] = [Math.floor((at * values.length) / length), Math.floor(((at + 1) * values.length) / length)]
    return Number(mean(values.slice(from, to)).toPrecision(4))
  })
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
