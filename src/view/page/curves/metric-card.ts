import { isShare, metricTitle } from "../../../runs/metrics.ts"
import { visible } from "../../../util/visible.ts"
import { type Column, type Curves, curvesOf, marksOf, smoothed } from "../../data/curves.ts"
import { wholeRange } from "../../data/metrics.ts"
import { valueInWords } from "../../data/value-words.ts"
import { element } from "../element.ts"
import { counted } from "../numbers.ts"
import { runMark } from "../run-mark.ts"
import type { Board } from "./board.ts"
import { Chart } from "./chart.ts"
import type { Choice } from "./choice.ts"
import { metricHelp } from "./metric-help.ts"
import { placeInWords } from "./place.ts"
import type { Line } from "./plot-options.ts"
import type { ShownRun } from "./shown-run.ts"
import { ValueTable } from "./value-table.ts"
import { Readout } from "./values.ts"

/** Card of a metric: its curves, the current values, and a table. */
export class MetricCard {
  readonly card: HTMLElement
  readonly #name: string
  readonly #chart: Chart
  readonly #readout = new Readout()
  readonly #table: ValueTable
  readonly #note: HTMLElement = element("p", { class: "note" })

  /** @param remove - called when the card is closed */
  constructor(name: string, board: Board, signal: AbortSignal, remove: () => void) {
    this.#name = name
    const shown = visible(metricTitle(name))
    this.#chart = new Chart(shown, board, signal)
    this.#table = new ValueTable(shown)
    const { button, text } = metricHelp(name)
    const close = element("button", { class: "close", "aria-label": `Remove ${shown}`, click: remove }, "×")
    const head = element("div", { class: "head" }, element("h4", {}, shown), button, close, text)
    this.card = element(
      "article",
      { class: "card" },
      head,
      this.#readout.list,
      this.#chart.area,
      this.#note,
      this.#table.details,
    )
    this.card.dataset.metric = name
  }

  end(): void {
    this.#chart.end()
    this.card.remove()
  }

  draw(runs: readonly ShownRun[], { along, smoothing, logarithmic }: Choice): void {
    const curves = curvesOf(
      runs.map(({ reports }) => reports),
      this.#name,
      along,
    )
    const positive = curves.values.every((column) => column.every((value) => value === null || value > 0))
    const broken = curves.nonFinite.reduce((sum, { size }) => sum + size, 0)
    this.#note.textContent = [
      logarithmic && !positive ? "Some values are not positive: the scale is linear." : "",
      broken > 0 ? `${counted(broken, "value is", "values are")} not finite (NaN or infinite), marked ✕.` : "",
    ]
      .join(" ")
      .trim()
    this.#chart.draw({
      along: curves.along,
      ...drawn(curves, runs, smoothing),
      logarithmic: logarithmic && positive,
      ...(isShare(this.#name) && { limits: [0, 1] as const, isShare: true }),
      ...(wholeRange.has(this.#name) && { isWhole: true }),
      kind: along,
      marks: marksOf(runs, along),
      read: (place) => {
        const values = runs.map((_, run) => valueInWords(this.#name, curves, run, place))
        this.#readout.show(runs, values)
        return runs.map(({ name }, run) => (runs.length > 1 ? `${name} ${values[run]}` : values[run])).join(", ")
      },
    })
    this.#table.show({
      head: [along === "time" ? "time" : "iteration", ...runs.map(({ name }) => name)],
      count: curves.along.length,
      row: (place) => [
        placeInWords(along, curves.along[place]!),
        ...runs.map((_, run) => valueInWords(this.#name, curves, run, place)),
      ],
    })
  }
}

/**
 * Lines of a card: intervals behind all curves, and smoothed curves in front of the faint original ones. Intervals belong to the original
 * values, so smoothed curves have none.
 */
function drawn({ values, nonFinite, intervals }: Curves, runs: readonly ShownRun[], smoothing: number) {
  const marks = runs.map(({ place }) => runMark(place))
  // Only non-finite values interrupt a line; other runs may have values where one has none.
  const line = (column: Column, run: number) =>
    column.map((value, at) => value ?? (nonFinite[run]!.has(at) ? null : undefined))
  const edges = (smoothing > 0 ? [] : (intervals ?? [])).flatMap(({ high, low }, run): Line[] => [
    { values: line(high, run), ...marks[run]!, edge: true },
    { values: line(low, run), ...marks[run]!, edge: true },
  ])
  const curves = marks.flatMap((mark, run): Line[] => [
    ...(smoothing > 0 ? [{ values: line(values[run]!, run), ...mark, faint: true }] : []),
    { values: line(smoothed(values[run]!, smoothing), run), ...mark, nonFinite: nonFinite[run]! },
  ])
  const bands = Array.from({ length: edges.length / 2 }, (_, run) => ({ high: 2 * run, low: 2 * run + 1 }))
  return { lines: [...edges, ...curves], bands }
}
