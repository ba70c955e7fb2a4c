import { isShare } from "../../runs/metrics.ts"
import type { IterationReport } from "../../runs/report.ts"
import { wilsonInterval } from "../../training/wilson.ts"
import { formatNumber, formatShare } from "../../util/format.ts"
import { isNonFinite, valuesOf } from "./scalars.ts"

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
  const names = new Set<string>()
  for (const report of reports) {
    const values = valuesOf(report)
    for (const name in values)
      if (!names.has(name) && (typeof values[name] === "number" || isNonFinite(values[name]))) names.add(name)
  }
  for (const name of names) if (intervalEnds.has(name)) names.delete(name)
  return names
}

const intervalEnds: ReadonlySet<string> = new Set(["evaluation/success-low", "evaluation/success-high"])

/** Sections of metrics, by the first part of their names. Other metrics are in the last section. */
const sections = {
  Success: ["evaluation", "episode"],
  Learning: ["policy", "loss", "optimizer", "critic", "sft", "preference", "distillation", "teacher", "reward"],
  Credit: ["group", "step-group", "advantage", "strategy", "greedy", "replay"],
  Soundness: ["action", "completion", "prompt", "sequence", "tokens", "guard", "mismatch"],
  Time: ["time"],
  Other: [],
} as const

export type Section = keyof typeof sections
export const sectionNames = Object.keys(sections) as Section[]

/** Episode metrics other than success. */
const episodeCourse = new Set(
  ["failed", "excluded", "truncated", "near-limit", "overflow", "loop-steps", "retried", "steps"].map(
    (name) => `episode/${name}`,
  ),
)

/** Section of a metric. */
export function sectionOf(name: string): Section {
  if (episodeCourse.has(name)) return "Soundness"
  const group = name.split("/", 1)[0]!
  return sectionNames.find((section) => (sections[section] as readonly string[]).includes(group)) ?? "Other"
}

/** Most informative metrics of a run, in order. */
const telling = [
  "evaluation/success",
  "episode/success",
  "episode/return",
  "loss/policy",
  "policy/kl",
  "loss/kl",
  "policy/entropy",
  "optimizer/gradient-norm",
  "group/constant",
  "step-group/nonzero",
  "step-group/size",
  "step-group/singletons",
  "advantage/step-share",
  "episode/steps",
  "completion/tokens",
  "action/valid",
]

/** Metrics whose charts always show the whole range from 0 to 1. */
export const wholeRange: ReadonlySet<string> = new Set(["evaluation/success", "episode/success"])

/** Value of a metric: shares in percent, "43.0 %". */
export function formatMetric(name: string, value: number): string {
  return isShare(name) ? formatShare(value) : formatNumber(value)
}

/** Metrics that are shown by default. */
export function firstMetrics(names: ReadonlySet<string>): readonly string[] {
  const known = telling.filter((name) => names.has(name))
  return known.length > 0 ? known : [...names].slice(0, 6)
}
