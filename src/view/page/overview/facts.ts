import { metricTitle } from "../../../runs/metrics.ts"
import { formatDuration, formatNumber, formatShare } from "../../../util/format.ts"
import type { Comparison } from "../../data/comparison.ts"
import { averaged, type Development, type Overview, type OverviewName, overviewMetrics } from "../../data/overview.ts"
import type { RunInfo } from "../../data/source.ts"

/** Fact about a run in short texts. */
export interface Fact {
  readonly name: OverviewName | "evaluation" | "time"
  readonly title: string
  readonly help: string
  readonly value: string
  /** Number by which runs are sorted. */
  readonly number: number
  readonly note: string
  readonly spark: readonly number[]
  readonly range?: readonly [number, number]
}

const mean = `Mean of the last ${averaged} iterations (of half of them in short runs), and its change since the first ones.`

/** Facts of a run in the order of an overview. Facts that do not apply are left out. */
export function factsOf({ metrics, evaluation }: Overview, run: RunInfo): Fact[] {
  const share = (name: OverviewName, title = metricTitle(overviewMetrics[name]), inverted = false): Fact[] => {
    const own = inverted ? complement(metrics[name]) : metrics[name]
    if (!own) return []
    const points = own.change === undefined ? undefined : 100 * own.change
    const note = points === undefined ? "" : `${signedText(points, 1)} points`
    const about = { name, title, help: mean, note, number: own.now, spark: own.spark }
    return [{ ...about, value: formatShare(own.now), range: [0, 1] }]
  }
  const number = (name: OverviewName, title = metricTitle(overviewMetrics[name])): Fact[] => {
    const own = metrics[name]
    if (!own) return []
    const note = own.change === undefined ? "" : signedText(own.change, 3)
    const about = {
      name,
      title,
      help: mean,
      note,
      number: own.now,
      spark: own.spark,
    }
    return [{ ...about, value: formatNumber(own.now) }]
  }
  return [
    ...(metrics.success ? share("success") : number("return")),
    ...(evaluation ? [best(evaluation)] : []),
    ...number("entropy", "Entropy (nats)"),
    ...share("constant"),
    ...share("valid", "Invalid actions", true),
    ...share("truncated"),
    ...share("failed"),
    ...time(metrics.seconds, run),
  ]
}

function best(evaluation: NonNullable<Overview["evaluation"]>): Fact {
  const { isReturn, bestIteration, lastIteration, last, spark } = evaluation
  const format = isReturn ? formatNumber : formatShare
  return {
    name: "evaluation",
    title: isReturn ? "Best return in evaluation" : "Best evaluation",
    help: "Evaluation on held-out tasks with the highest success rate, or the highest mean return without reported success.",
    value: format(evaluation.best),
    number: evaluation.best,
    note:
      bestIteration === lastIteration
        ? `iteration ${bestIteration}, the last`
        : `iteration ${bestIteration}; last ${format(last)} (${lastIteration})`,
    spark,
    ...(!isReturn && { range: [0, 1] as const }),
  }
}

function time(seconds: Development | undefined, { secondsLeft, state }: RunInfo): Fact[] {
  const isLeft = secondsLeft !== undefined && state !== "deleted"
  if (!seconds && !isLeft) return []
  const pace = seconds && `${formatDuration(seconds.now)} per iteration`
  return [
    {
      name: "time",
      title: isLeft ? "Time left" : "Time per iteration",
      help: "At the pace of the last iterations.",
      value: isLeft ? formatDuration(secondsLeft) : formatDuration(seconds!.now),
      number: isLeft ? secondsLeft : seconds!.now,
      note: (isLeft && pace) || "",
      spark: seconds?.spark ?? [],
    },
  ]
}

/** Development of one minus the share. */
function complement(of: Development | undefined): Development | undefined {
  if (!of) return undefined
  const { now, change, spark } = of
  return { now: 1 - now, ...(change !== undefined && { change: -change }), spark: spark.map((value) => 1 - value) }
}

function signedText(value: number, digits: number): string {
  const rounded = Number(value.toPrecision(digits + 1))
  const text = digits === 1 ? Math.abs(value).toFixed(1) : formatNumber(Math.abs(rounded))
  return `${Number(text.replaceAll(",", "")) === 0 ? "±" : value < 0 ? "−" : "+"}${text}`
}

/**
 * State of a run's learning in a sentence: "Success rose from 12.5 % to 56.2 % in 40 iterations." A change below two standard errors is
 * described as one that may be chance.
 */
export function learningSentence(
  { metrics: { success, return: earned } }: Overview,
  { iteration }: RunInfo,
): string | undefined {
  const [own, name, format] = success
    ? ([success, "Success", formatShare] as const)
    : ([earned, "The return", formatNumber] as const)
  if (own?.change === undefined) return undefined
  const from = own.now - own.change
  const isSame = format(from) === format(own.now)
  const isClear = own.error === undefined || Math.abs(own.change) > 2 * own.error
  if (isSame) return `${name} has stayed at ${format(own.now)} over ${iteration} iterations.`
  if (!isClear)
    return `${name} has hardly changed in ${iteration} iterations: from ${format(from)} to ${format(own.now)}, which may be chance.`
  return `${name} ${own.change > 0 ? "rose" : "fell"} from ${format(from)} to ${format(own.now)} in ${iteration} iterations.`
}

/** Comparison in a sentence: "a is ahead of b in success since iteration 4: 39.5 % against 30.9 % (mean of iterations 8 to 12)." */
export function comparisonSentence(
  { best, other, metric, means, from, to, since }: Comparison,
  names: readonly string[],
): string {
  const format = metric === "episode/success" ? formatShare : formatNumber
  const numbers = `${format(means[0])} against ${format(means[1])} (mean of iterations ${from} to ${to})`
  const title = metricTitle(metric).toLowerCase()
  return since === undefined
    ? `${names[best]} and ${names[other]} are not clearly apart in ${title}: ${numbers}.`
    : `${names[best]} is ahead of ${names[other]} in ${title} since iteration ${since}: ${numbers}.`
}
