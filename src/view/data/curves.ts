import type { IterationReport } from "../../runs/report.ts"
import { intervalOf } from "./metrics.ts"
import { nonFiniteOf, valuesOf } from "./scalars.ts"

/** x-axis of a plot: the iteration, or the seconds of the run. */
export type Along = "iteration" | "time"

/** Values at places; null if there is none. */
export type Column = readonly (number | null)[]

/** Curves of a metric, one per run, over the places of all runs. */
export interface Curves {
  /** [places] Ascending. */
  readonly along: readonly number[]
  /** [runs][places] Null if a run has no value. */
  readonly values: readonly Column[]
  /** [runs] Indices in `along` at which the value is NaN or infinite. */
  readonly nonFinite: readonly ReadonlySet<number>[]
  /** [runs][places] 95 % interval; absent if the metric is not a share of episodes. */
  readonly intervals?: readonly { readonly low: Column; readonly high: Column }[]
}

interface Point {
  readonly value: number
  readonly interval: readonly [number, number] | undefined
}

/** Curves of a metric of several runs. Places without a value of any run are omitted. */
export function curvesOf(runs: readonly (readonly IterationReport[])[], name: string, along: Along): Curves {
  const places = runs.map((reports) => placesOf(reports, along))
  const points = runs.map((reports, run) => {
    const at = new Map<number, Point>()
    for (const [place, report] of reports.entries()) {
      const value = numbersOf(report).values[name]
      if (typeof value === "number" && Number.isFinite(value))
        at.set(places[run]![place]!, { value, interval: intervalOf(report, name) })
    }
    return at
  })
  const broken = runs.map((reports, run) =>
    reports.flatMap((report, place) => (numbersOf(report).nonFinite.has(name) ? [places[run]![place]!] : [])),
  )
  const all = [...new Set([...points.flatMap((at) => [...at.keys()]), ...broken.flat()])].sort((a, b) => a - b)
  const indices = new Map(all.map((place, at) => [place, at]))
  const nonFinite = broken.map((of) => new Set(of.map((place) => indices.get(place)!)))
  const column = (pick: (point: Point) => number | undefined) =>
    points.map((at): Column => all.map((place) => (at.has(place) ? (pick(at.get(place)!) ?? null) : null)))
  const values = column(({ value }) => value)
  if (!points.some((at) => [...at.values()].some(({ interval }) => interval))) return { along: all, values, nonFinite }
  const [low, high] = [column(({ interval }) => interval?.[0]), column(({ interval }) => interval?.[1])]
  return { along: all, values, nonFinite, intervals: low.map((one, run) => ({ low: one, high: high[run]! })) }
}

/** Run with what is marked in its curves. */
export interface MarkedRun {
  readonly reports: readonly IterationReport[]
  /** Iterations with checkpoints. */
  readonly checkpoints: readonly number[]
}

/** Events that are marked in curves: warnings of guards, resumptions, and existing checkpoints. */
export type CurveEvent = "warned" | "resumed" | "saved"

/** Places of events, ascending. */
export type Marks = Readonly<Record<CurveEvent, readonly number[]>>

export function marksOf(runs: readonly MarkedRun[], along: Along): Marks {
  const places = (isMarked: (report: IterationReport, run: MarkedRun) => boolean) => {
    const found = runs.flatMap((run) => {
      const own = placesOf(run.reports, along)
      return run.reports.flatMap((report, at) => (isMarked(report, run) ? [own[at]!] : []))
    })
    return [...new Set(found)].sort((a, b) => a - b)
  }
  return {
    warned: places(({ warnings = [] }) => warnings.length > 0),
    resumed: places(({ resumed }) => resumed === true),
    saved: places(({ iteration }, { checkpoints }) => checkpoints.includes(iteration)),
  }
}

/** Range of reports on the x-axis; undefined if there are none. */
export function reachOf(
  runs: readonly (readonly IterationReport[])[],
  along: Along,
): readonly [from: number, to: number] | undefined {
  const places = runs.flatMap((reports) => placesOf(reports, along)).sort((a, b) => a - b)
  return places.length > 0 ? [places[0]!, places.at(-1)!] : undefined
}

/** Places of reports on the x-axis. Seconds are the working time of the run, without interruptions. */
function placesOf(reports: readonly IterationReport[], along: Along): readonly number[] {
  if (along === "iteration") return reports.map(({ iteration }) => iteration)
  const started = Date.parse(reports[0]?.time ?? "")
  return reports.map(({ iteration, time, metrics }) => {
    const seconds = metrics["time/run"] ?? (Date.parse(time ?? "") - started) / 1000
    return Number.isFinite(seconds) ? seconds : iteration
  })
}

/**
 * Exponential moving average with bias correction (divided by the sum of the weights).
 *
 * @param weight - weight of earlier values, from 0 (no smoothing) to below 1
 */
export function smoothed(values: Column, weight: number): Column {
  if (weight === 0) return values
  let [sum, weights] = [0, 0]
  return values.map((value) => {
    if (value === null) return null
    sum = weight * sum + (1 - weight) * value
    weights = weight * weights + (1 - weight)
    return sum / weights
  })
}

/** Nearest place to `place` with a value; undefined before the first and after the last value. */
export function nearestKnown(values: Column, place: number): number | undefined {
  const known = (at: number) => typeof values[at] === "number"
  let [before, after] = [place, place]
  while (before >= 0 && !known(before)) before -= 1
  while (after < values.length && !known(after)) after += 1
  if (before < 0 || after >= values.length) return undefined
  return place - before <= after - place ? before : after
}

/** Place of the last value; undefined if there is none. */
export function lastKnown(values: Column): number | undefined {
  const last = values.findLastIndex((value) => value !== null)
  return last < 0 ? undefined : last
}

/** Index of the nearest value in an ascending list. */
export function nearestPlace(along: readonly number[], at: number): number {
  const next = along.findIndex((one) => one >= at)
  if (next < 0) return along.length - 1
  return next > 0 && at - along[next - 1]! < along[next]! - at ? next - 1 : next
}

interface Numbers {
  readonly values: ReturnType<typeof valuesOf>
  /** Names of the values that are not finite. */
  readonly nonFinite: ReadonlySet<string>
}

/** Cache of the numbers of a report, which are requested for each metric. */
const known = new WeakMap<IterationReport, Numbers>()
const none: ReadonlySet<string> = new Set()

function numbersOf(report: IterationReport): Numbers {
  let numbers = known.get(report)
  if (!numbers) {
    const nonFinite = nonFiniteOf(report)
    numbers = { values: valuesOf(report), nonFinite: nonFinite.length > 0 ? new Set(nonFinite) : none }
    known.set(report, numbers)
  }
  return numbers
}
