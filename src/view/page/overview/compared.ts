import { visible } from "../../../util/visible.ts"
import { compareRuns } from "../../data/comparison.ts"
import type { Overview } from "../../data/overview.ts"
import type { RunInfo } from "../../data/source.ts"
import type { ShownRun } from "../curves/shown-run.ts"
import { element } from "../element.ts"
import { comparisonSentence } from "./facts.ts"

/** Maximum number of runs that are compared with the best one in sentences. */
const mostCompared = 4

/** Run with its overview. */
export interface ComparedRun extends ShownRun {
  readonly info: RunInfo
  readonly overview: Overview
}

/** Sentences about several runs: which is best and since when, and what is wrong with each. `open` shows one run alone. */
export function comparedRuns(runs: readonly ComparedRun[], open: (id: string) => void): HTMLElement[] {
  const isOneTask = new Set(runs.map(({ info }) => info.settings["environment.name"])).size === 1
  const found = isOneTask ? compareRuns(runs.map(({ reports }) => reports)).slice(0, mostCompared) : []
  const names = runs.map(({ name }) => name)
  const problems = runs.flatMap(({ id, name, overview: { findings } }) => {
    if (findings.length === 0) return []
    const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : ""
    const link = element("a", { href: "#/curves", click: () => open(id) }, name)
    return [element("li", { class: "finding" }, link, `: ${visible(findings[0]!.text)}${more}`)]
  })
  return [...found.map((one) => element("li", { class: "learning" }, comparisonSentence(one, names))), ...problems]
}
