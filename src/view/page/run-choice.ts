import type { IterationReport } from "../../runs/report.ts"
import { formatDuration, formatShare } from "../../util/format.ts"
import { visible } from "../../util/visible.ts"
import type { RunInfo } from "../data/source.ts"
import { element } from "./element.ts"
import { runSwatch } from "./run-mark.ts"
import type { RunStore } from "./run-store.ts"

/** Maximum number of runs that are all listed. Of more runs, the shown ones are listed, and the others are in the table of runs. */
const mostListed = 8

/** Maximum number of runs whose success is in the list. */
const mostDescribed = 3

/** List of runs with their states and a checkbox for each shown run. Updated with the store. */
export function runChoice(store: RunStore, signal: AbortSignal): HTMLElement {
  const list = element("ul", { class: "run-list", "aria-label": "Runs" })
  const rest = element("a", { href: "#/runs" })
  const more = element("li", { hidden: true }, rest)
  const rows = new Map<string, Row>()
  const draw = () => {
    const [{ runs }, shown] = [store, new Set(store.shown.map(({ id }) => id))]
    for (const [place, run] of runs.entries()) {
      let row = rows.get(run.id)
      if (!row) {
        row = new Row(run, place, store)
        rows.set(run.id, row)
        list.append(row.item)
      }
      row.draw(run, shown.has(run.id), runs.length)
      row.item.hidden = runs.length > mostListed && !shown.has(run.id)
    }
    more.hidden = runs.length <= mostListed
    rest.textContent = `${shown.size} of ${runs.length} runs are shown`
    list.append(more)
  }
  store.subscribe(draw, signal)
  draw()
  return list
}

/** List item of a run. Reused in updates, so that the focus is kept. */
class Row {
  readonly item: HTMLElement
  readonly #store: RunStore
  readonly #box: HTMLInputElement
  readonly #state: HTMLElement = element("span", { class: "state" })

  constructor(run: RunInfo, place: number, store: RunStore) {
    this.#store = store
    this.#box = element("input", { type: "checkbox", change: () => store.show(run.id, this.#box.checked) })
    const name = element("span", { class: "name" }, visible(run.name))
    this.item = element("li", {}, element("label", {}, this.#box, runSwatch(place), name), this.#state)
  }

  draw(run: RunInfo, shown: boolean, all: number): void {
    this.#box.hidden = all === 1
    this.#box.checked = shown
    this.item.dataset.state = run.state
    // Many runs are listed briefly; their numbers are in the table of runs.
    if (shown && all <= mostDescribed)
      void this.#store.reports(run.id).then(
        (reports) => this.#describe(run, reports),
        () => this.#describe(run, []),
      )
    else this.#describe(run, [])
  }

  #describe(run: RunInfo, reports: readonly IterationReport[]): void {
    const text = describeRun(run, reports)
    if (this.#state.textContent !== text) this.#state.textContent = text
  }
}

/** State of a run in words: "running · 12 of 150 · 3 h 10 min left · success 43.0 %, in evaluation 40.2 % (iteration 10)". */
export function describeRun(run: RunInfo, reports: readonly IterationReport[]): string {
  const { state, iteration, iterations, secondsLeft } = run
  return [
    state,
    iterations === undefined ? `iteration ${iteration}` : `${iteration} of ${iterations}`,
    ...(state === "running" && secondsLeft !== undefined ? [`${formatDuration(secondsLeft)} left`] : []),
    ...successOf(reports),
  ].join(" · ")
}

/** Success rates of the last iteration, and of the last evaluation with its iteration. */
function successOf(reports: readonly IterationReport[]): string[] {
  const trained = reports.at(-1)?.metrics["episode/success"]
  const evaluated = reports.findLast(({ evaluation }) => evaluation?.metrics.success !== undefined)
  const rates = [
    ...(typeof trained === "number" ? [formatShare(trained)] : []),
    ...(evaluated
      ? [`in evaluation ${formatShare(evaluated.evaluation!.success)} (iteration ${evaluated.iteration})`]
      : []),
  ]
  return rates.length === 0 ? [] : [`success ${rates.join(", ")}`]
}
