import type { IterationReport } from "../../../runs/report.ts"
import { visible } from "../../../util/visible.ts"
import { type Overview, overviewOf } from "../../data/overview.ts"
import type { RunInfo } from "../../data/source.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { type Fact, factsOf, learningSentence } from "./facts.ts"
import { spark } from "./spark.ts"

/** Overview of a run: sentences about its learning and its problems, and tiles of numbers with their development. */
export class RunOverview {
  readonly root: HTMLElement = element("section", { class: "overview", "aria-label": "Overview", hidden: true })
  #drawn = ""

  /** Shows a run; without a run, or before its first report, nothing. */
  show(run: RunInfo | undefined, reports: readonly IterationReport[]): void {
    const isEmpty = run === undefined || reports.length === 0
    this.root.hidden = isEmpty
    if (isEmpty) return
    const overview = overviewOf(reports, run.settings)
    const facts = factsOf(overview, run)
    // Drawn again only if something has changed, so that an opened list stays open.
    const shape = JSON.stringify([run.id, run.iteration, facts, overview.findings, overview.warnings, overview.stopped])
    if (shape === this.#drawn) return
    this.#drawn = shape
    this.root.replaceChildren(...sentences(overview, run), tiles(facts, overview))
  }
}

function sentences({ findings, warnings, stopped, ...rest }: Overview, run: RunInfo): HTMLElement[] {
  const learning = learningSentence({ findings, warnings, ...rest }, run)
  const says = [
    ...(learning === undefined ? [] : [element("li", { class: "learning" }, learning)]),
    ...findings.map(({ text }) => element("li", { class: "finding" }, visible(text))),
    ...(stopped === undefined ? [] : [element("li", {}, `The run has stopped early: ${visible(stopped)}`)]),
  ]
  const told = warnings.map(({ iteration, text }) => element("li", {}, `Iteration ${iteration}: `, longText(text, 600)))
  return [
    ...(says.length > 0 ? [element("ul", { class: "says" }, ...says)] : []),
    ...(told.length > 0
      ? [element("details", {}, element("summary", {}, "Warnings of the guards"), element("ul", {}, ...told))]
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
