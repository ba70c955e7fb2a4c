import type { BenchmarkReport } from "../../benchmark/report.ts"
import type { EvaluationReport } from "../../runs/report.ts"
import type { Config } from "../config/config.ts"
import { formatNumber, formatShare } from "./format.ts"
import { describeSuccess } from "./training-view.ts"

/** Share of valid actions below which likely causes are reported. */
const few = 0.1

/** Lines of an evaluation: metrics by name, and how completions were sampled. */
export function evaluationTable(report: EvaluationReport | BenchmarkReport, { training }: Config): string[] {
  const { success: _, ...metrics } = report.metrics
  const { evaluation, rollout } = training
  const sampled = typeof rollout.temperature === "number" ? formatNumber(rollout.temperature) : "a schedule"
  const rows: [name: string, value: string][] = [
    ["success", describeSuccess(report)],
    ["return", formatNumber(report.meanReturn)],
    ["steps", formatNumber(report.meanSteps)],
    ["failed", formatShare(report.failed)],
    ...(report.excluded === undefined ? [] : [["excluded", formatShare(report.excluded)] as [string, string]]),
    ...Object.entries(metrics).map(([name, value]): [string, string] => [name, formatNumber(value)]),
    ...describeCompletions(report, rollout.maxCompletionTokens),
    [
      "temperature",
      `${formatNumber(evaluation.temperature)} (training.evaluation.temperature); training samples at ${sampled}`,
    ],
  ]
  const width = Math.max(16, ...rows.map(([name]) => name.length + 2))
  return rows.map(([name, value]) => `  ${name.padEnd(width)}${value}`)
}

function describeCompletions(
  { valid, completionsTruncated: truncated = 0 }: EvaluationReport,
  most: number,
): [string, string][] {
  if (valid === undefined) return []
  const long = truncated > 0 ? `; ${formatShare(truncated)} truncated at ${most} tokens` : ""
  return [["valid", `${formatShare(valid)} of the completions${long}`]]
}

/** Message with likely causes if the environment could parse few or no completions; undefined otherwise. */
export function unreadable(report: EvaluationReport, environment: string, most: number): string | undefined {
  const { valid, completionsTruncated: truncated = 0 } = report
  if (valid === undefined || valid >= few) return undefined
  const share = valid === 0 ? "None" : `Only ${formatShare(valid)}`
  const causes = [
    `a model that was not trained for ${environment} (gigpo sft teaches the format of its completions)`,
    "a chat template other than the one it was trained with",
    ...(truncated > 0
      ? [`truncated completions: ${formatShare(truncated)} reached training.rollout.maxCompletionTokens=${most}`]
      : []),
  ]
  return `${share} of the completions could be parsed as actions of ${environment}. Likely causes: ${causes.join("; ")}.`
}
