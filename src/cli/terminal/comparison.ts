import { display } from "../../options/display.ts"
import type { Compared, Comparison } from "../../panel/compare.ts"
import type { ComparedSuccess } from "../../panel/compare-success.ts"
import { isDigest, shortDigest } from "../../panel/digest-text.ts"
import type { MeanInterval } from "../../panel/paired.ts"
import { formatNumber, formatShare } from "./format.ts"
import { table } from "./table.ts"

/** An evaluation by its file, and by what was evaluated where that is known. */
export interface Named {
  readonly file: string
  readonly model?: string | undefined
}

/** So many keys of tasks are shown; JSON has them all. */
const keysShown = 5
/** With fewer tasks that differ, a mean over tasks is not yet near normal. */
const fewTasks = 10

/** A comparison for a terminal. */
export function comparisonLines(comparison: Comparison, first: Named, second: Named): string[] {
  const { panel, tasks, differing, failed, success } = comparison
  const kinds = Object.entries(success?.kinds ?? {})
  return [
    `${panel}, ${tasks} tasks`,
    ...[first, second].map(({ file, model }, i) => `  ${"AB"[i]}  ${file}${model === undefined ? "" : `: ${model}`}`),
    ...differing.map((one) => `Not alike: ${one.what} (${short(one.first)} and ${short(one.second)}).`),
    ...(failed.first + failed.second > 0 ? [`Failed episodes: ${failed.first} and ${failed.second}.`] : []),
    "",
    ...table([
      ["", "A", "B", "A - B"],
      ...(success ? [row("success", success, formatShare, points)] : []),
      ...(kinds.length > 1 ? kinds.map(([kind, one]) => row(`  ${kind}`, one, formatShare, points)) : []),
      ...(comparison.return ? [row("return", comparison.return, formatNumber)] : []),
      ...(comparison.steps ? [row("steps", comparison.steps, formatNumber)] : []),
    ]),
    "",
    "In brackets 95 % intervals over tasks; that of a difference by Student's t, each task being a pair.",
    ...(success ? testLines(success) : ["Nothing tells of success here."]),
  ]
}

type Format = (value: number) => string

/** Of shares, so that 5 of 50 % is not taken for 5 % of it. */
const points: Format = (share) => (100 * share).toFixed(1)

function row(name: string, { first, second, difference }: Compared, format: Format, other = format): string[] {
  const signed: Format = (value) => `${value > 0 ? "+" : ""}${other(value)}`
  return [name, interval(first, format), interval(second, format), interval(difference, signed)]
}

/** One task alone has none. */
function interval({ mean, low, high }: MeanInterval, format: Format): string {
  return Number.isFinite(low) ? `${format(mean)} (${format(low)} to ${format(high)})` : format(mean)
}

function testLines({ test: { name, first, second, p }, onlyFirst, onlySecond }: ComparedSuccess): string[] {
  const more = name === "McNemar" ? "solved by" : "solved more often by"
  const told = name === "McNemar" ? "McNemar's exact test" : "the exact sign test, as tasks were played more than once"
  return [
    `Tasks ${more} A alone: ${first}, by B alone: ${second}; p = ${formatNumber(p)} by ${told}.`,
    ...(first + second < fewTasks ? ["So few tasks differ that the interval is rough: go by p."] : []),
    ...keyLines("A", onlyFirst),
    ...keyLines("B", onlySecond),
  ]
}

function keyLines(name: string, keys: readonly string[]): string[] {
  if (keys.length === 0) return []
  const more = keys.length > keysShown ? `, and ${keys.length - keysShown} more (--json)` : ""
  return [`Only ${name} ever solved: ${keys.slice(0, keysShown).map(short).join(", ")}${more}`]
}

/** What comes from files may be long; digests are known by their beginnings. */
function short(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "unset" : display(value)
  return isDigest(text) ? shortDigest(text) : text.length > 60 ? `${text.slice(0, 60)}…` : text
}
