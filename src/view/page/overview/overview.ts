import type { IterationReport } from "../../../runs/report.ts"
import { visible } from "../../../util/visible.ts"
import { averaged, type Overview, overviewOf } from "../../data/overview.ts"
import type { RunInfo } from "../../data/source.ts"
import type { ShownRun } from "../curves/shown-run.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { comparedRuns } from "./compared.ts"
import { type Fact, factsOf, learningSentence } from "./facts.ts"
import { spark } from "./spark.ts"

const means = `Numbers are means of the last iterations (at most ${averaged}), with their change since the first ones.`

/**
 * Overview of a run: sentences about its learning and its problems, and tiles of numbers with their development. Several runs are compared
 * in sentences.
 */
export class RunOverview {
  readonly root: HTMLElement = element("section", { class: "overview", "aria-label": "Overview", hidden: true })
  #drawn = ""

  /** Shows one run, or several compared; before the first report, nothing. `open` shows one of the runs alone. */
  show(runs: readonly (ShownRun & { readonly info: RunInfo })[], open: (id: string) => void): void {
    const [only] = runs
    if (runs.length === 1) this.#showRun(only!.info, only!.reports)
    else this.#showCompared(runs, open)
  }

  #showCompared(runs: readonly (ShownRun & { readonly info: RunInfo })[], open: (id: string) => void): void {
    const known = runs.filter(({ reports }) => reports.length > 0)
    const all = known.map((run) => ({ ...run, overview: overviewOf(run.reports, run.info.settings) }))
    const says = comparedRuns(all, open)
    this.root.hidden = says.length === 0
    const shape = says.map(({ textContent }) => textContent).join("\n")
    if (shape === this.#drawn) return
    this.#drawn = shape
    this.root.replaceChildren(element("ul", { class: "says" }, ...says))
  }

  #showRun(run: RunInfo, reports: readonly IterationReport[]): void {
    this.root.hidden = reports.length === 0
    if (this.root.hidden) return
    const overview = overviewOf(reports, run.settings)
    const facts = factsOf(overview, run)
    // Drawn again only if something has changed, so that an opened list stays open.
    const shape = JSON.stringify([run.id, run.iteration, facts, overview.findings, overview.warnings, overview.stopped])
    if (shape === this.#drawn) return
    this.#drawn = shape
    this.root.replaceChildren(
      ...sentences(overview, run),
      tiles(facts, overview),
      element("p", { class: "note" }, means),
    )
  }
}

function sentences({ findings, warnings, stopped, ...rest }: Overview, run: RunInfo): HTMLElement[] {
  const learning = learningSentence({ findings, warnings, ...rest }, run)
  const says = [
    ...(learning === undefined ? [] : [element("li", { class: "learning" }, learning)]),
    ...findings.map(({ text }) => element("li", { class: "finding" }, visible(text))),
    ...(stopped === undefined ? [] : [element("li", {}, `The run has stopped early: ${visible(stopped)}`)]),
  ]
  const items = warnings.map(({ iteration, text }) =>
    element("li", {}, `Iteration ${iteration}: `, longText(text, 600)),
  )
  return [
    ...(says.length > 0 ? [element("ul", { class: "says" }, ...says)] : []),
    ...(items.length > 0
      ? [element("details", {}, element("summary", {}, "Warnings of the guards"), element("ul", {}, ...items))]
      : []),
  ]
}

function tiles(facts: readonly Fact[], { findings }: Overview): HTMLElement {
  const wrong = new Set(findings.map(({ tile }) => tile))
  return element(
    "dl",
    { class: "tiles" },
    ...facts.map(({ name, title, help, value, note, spark: values, range }) =>
      element(
        "div",
        { class: wrong.has(name as never) ? "tile wrong" : "tile", title: help, "data-tile": name },
        element("dt", {}, title),
        element(
          "dd",
          {},
          element("span", { class: "value" }, value),
          element("span", { class: "note" }, note),
          spark(values, range),
        ),
      ),
    ),
  )
}
