import type { Comparison, MeasureComparison } from "../../benchmark/compare.ts"
import type { SuccessComparison } from "../../benchmark/compare-success.ts"
import { isDigest, shortDigest } from "../../benchmark/digest-text.ts"
import type { MeanInterval } from "../../benchmark/paired.ts"
import { display } from "../../options/display.ts"
import { formatNumber, formatShare } from "./format.ts"
import { table } from "./table.ts"

/** Evaluation by its file, and by the model if known. */
export interface Named {
  readonly file: string
  readonly model?: string | undefined
}

/** Maximum task keys shown; JSON output has all of them. */
const keysShown = 5
/** Number of differing tasks below which a mean over tasks is far from normal. */
const fewTasks = 10

/** Formats a comparison for a terminal. */
export function comparisonLines(comparison: Comparison, first: Named, second: Named): string[] {
  const { benchmark, tasks, differing, unscored, success } = comparison
  const kinds = Object.entries(success?.kinds ?? {})
  return [
    `${benchmark}, ${tasks} tasks`,
    ...[first, second].map(({ file, model }, i) => `  ${"AB"[i]}  ${file}${model === undefined ? "" : `: ${model}`}`),
    ...differing.map((one) => `Different setting: ${one.name} (${short(one.first)} and ${short(one.second)}).`),
    ...(unscored.first + unscored.second > 0
      ? [`Failed or excluded episodes: ${unscored.first} and ${unscored.second}.`]
      : []),
    "",
    ...table([
      ["", "A", "B", "A - B"],
      ...(success ? [row("success", success, formatShare, points)] : []),
      ...(kinds.length > 1 ? kinds.map(([kind, one]) => row(`  ${kind}`, one, formatShare, points)) : []),
      ...(comparison.return ? [row("return", comparison.return, formatNumber)] : []),
      ...(comparison.steps ? [row("steps", comparison.steps, formatNumber)] : []),
    ]),
    "",
    "In parentheses: 95 % intervals over tasks; for differences by Student's t, paired by task.",
    ...(success ? testLines(success) : ["The environment reports no success."]),
  ]
}

type Format = (value: number) => string

/** Percentage points without a sign, so that 5 points are not mistaken for 5 percent. */
const points: Format = (share) => (100 * share).toFixed(1)

function row(name: string, { first, second, difference }: MeasureComparison, format: Format, other = format): string[] {
  const signed: Format = (value) => `${value > 0 ? "+" : ""}${other(value)}`
  return [name, interval(first, format), interval(second, format), interval(difference, signed)]
}

/** Mean with its interval. A single task has no interval. */
function interval({ mean, low, high }: MeanInterval, format: Format): string {
  return Number.isFinite(low) ? `${format(mean)} (${format(low)} to ${format(high)})` : format(mean)
}

function testLines({ test: { name, first, second, p }, onlyFirst, onlySecond }: SuccessComparison): string[] {
  const more = name === "McNemar" ? "solved by" : "solved more often by"
  const test = name === "McNemar" ? "McNemar's exact test" : "the exact sign test, since tasks have several episodes"
  return [
    `Tasks ${more} A alone: ${first}, by B alone: ${second}; p = ${formatNumber(p)} by ${test}.`,
    ...(first + second < fewTasks ? ["Few tasks differ, so the interval is rough; rely on p."] : []),
    ...keyLines("A", onlyFirst),
    ...keyLines("B", onlySecond),
  ]
}

function keyLines(name: string, keys: readonly string[]): string[] {
  if (keys.length === 0) return []
  const more = keys.length > keysShown ? `, and ${keys.length - keysShown} more (--json)` : ""
  return [`Only ${name} ever solved: ${keys.slice(0, keysShown).map(short).join(", ")}${more}`]
}

/** Short form of a value from a file; a digest is abbreviated. */
function short(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "unset" : display(value)
  return isDigest(text) ? shortDigest(text) : text.length > 60 ? `${text.slice(0, 60)}…` : text
}
