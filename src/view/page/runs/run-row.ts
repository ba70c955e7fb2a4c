import { visible } from "../../../util/visible.ts"
import type { Overview } from "../../data/overview.ts"
import type { RunInfo } from "../../data/source.ts"
import { element } from "../element.ts"
import { type Fact, factsOf } from "../overview/facts.ts"
import { spark } from "../overview/spark.ts"
import { runSwatch } from "../run-mark.ts"

/** Columns of numbers in the table of runs, by the names of facts. */
export const factColumns = {
  success: "Success",
  evaluation: "Best evaluation",
  entropy: "Entropy",
  constant: "Without signal",
  valid: "Invalid",
  failed: "Failed",
  time: "Time",
} as const
export type FactColumn = keyof typeof factColumns
export type RunColumn = "name" | "state" | FactColumn

/** Run with its facts, as far as they are known. */
export interface Row {
  readonly run: RunInfo
  /** Index among all runs, which determines the colour. */
  readonly place: number
  readonly facts: ReadonlyMap<string, Fact>
  readonly problems: readonly string[]
}

export function rowOf(run: RunInfo, place: number, overview: Overview | undefined): Row {
  const facts = new Map(
    (overview ? factsOf(overview, run) : []).map((fact) => [fact.name === "return" ? "success" : fact.name, fact]),
  )
  return { run, place, facts, problems: overview?.findings.map(({ text }) => text) ?? [] }
}

/** Key by which rows are sorted; undefined sorts last. */
export function sortKey({ run, facts }: Row, column: RunColumn): string | number | undefined {
  if (column === "name") return run.name
  if (column === "state") return run.iterations ? run.iteration / run.iterations : run.iteration
  return facts.get(column)?.number
}

/** Row of the table of runs. */
export function drawRow(
  { run, place, facts, problems }: Row,
  isShown: boolean,
  tell: { readonly show: (shown: boolean) => void; readonly open: () => void },
): HTMLElement {
  const name = visible(run.name)
  const box = element("input", {
    type: "checkbox",
    checked: isShown,
    "aria-label": `Show ${name}`,
    change: () => tell.show(box.checked),
  })
  const progress = run.iterations === undefined ? run.iteration : `${run.iteration} of ${run.iterations}`
  const cells = (Object.keys(factColumns) as FactColumn[]).map((column) => {
    const fact = facts.get(column)
    if (!fact) return element("td", {}, "–")
    const isWide = column === "success" || column === "evaluation"
    return element(
      "td",
      { class: "number" },
      fact.value,
      isWide && element("span", { class: "note" }, fact.note),
      isWide && spark(fact.spark, fact.range),
    )
  })
  return element(
    "tr",
    { "data-run": run.id, "data-state": run.state },
    element("td", {}, box),
    element(
      "th",
      { scope: "row" },
      runSwatch(place),
      element("a", { href: "#/curves", click: tell.open }, name),
      // On a phone, where it has no column.
      element("span", { class: "note narrow" }, `${run.state} · ${progress}`),
      problems.length > 0 &&
        element(
          "span",
          { class: "note problem", title: visible(problems.join("\n")) },
          visible(problems[0]!),
          problems.length > 1 && ` (and ${problems.length - 1} more)`,
        ),
    ),
    element("td", { class: "state" }, run.state, element("span", { class: "note" }, progress)),
    ...cells,
  )
}
