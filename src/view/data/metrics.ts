import type { IterationReport } from "../../runs/report.ts"
import { wilsonInterval } from "../../training/wilson.ts"
import { scalarsOf } from "./scalars.ts"

/** 95 % interval of a share of episodes; undefined for other metrics, or if the number of episodes is unknown. */
export function intervalOf(
  { metrics, evaluation }: IterationReport,
  name: string,
): readonly [number, number] | undefined {
  if (name === "evaluation/success" && evaluation?.metrics.success !== undefined) return evaluation.successInterval
  const [success, count] = [metrics["episode/success"], metrics["episode/count"]]
  if (name !== "episode/success" || success === undefined || !count) return undefined
  return wilsonInterval(success * count, count)
}

/** Names of metrics in order of first appearance, without interval bounds, which are shown with their metric. */
export function metricNames(reports: readonly IterationReport[]): Set<string> {
  const names = new Set(reports.flatMap((report) => Object.keys(scalarsOf(report))))
  for (const name of names) if (intervalEnds.has(name)) names.delete(name)
  return names
}

const intervalEnds: ReadonlySet<string> = new Set(["evaluation/success-low", "evaluation/success-high"])

/** Group of a metric, e.g. "step-group" of "step-group/size". */
export function groupOf(name: string): string {
  return name.split("/", 1)[0]!
}

/** Most informative metrics of a run, in order: success, learning, stability. */
const telling = [
  "evaluation/success",
  "episode/success",
  "episode/return",
  "episode/steps",
  "loss/policy",
  "policy/kl",
  "loss/kl",
  "policy/entropy",
  "optimizer/gradient-norm",
  "completion/tokens",
  "action/valid",
  "step-group/size",
  "step-group/singletons",
  "advantage/step-share",
]

/** Metrics that are shown by default. */
export function firstMetrics(names: ReadonlySet<string>): readonly string[] {
  const known = telling.filter((name) => names.has(name))
  return known.length > 0 ? known : [...names].slice(0, 6)
}
