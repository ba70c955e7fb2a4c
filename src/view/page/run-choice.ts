import type { IterationReport } from "../../runs/report.ts"
import { formatDuration, formatShare } from "../../util/format.ts"
import { visible } from "../../util/visible.ts"
import type { RunInfo } from "../data/source.ts"
import { element } from "./element.ts"
import { runSwatch } from "./run-mark.ts"
import type { RunStore } from "./run-store.ts"

/** List of runs with their states and a checkbox for each shown run. Updated with the store. */
export function runChoice(store: RunStore, signal: AbortSignal): HTMLElement {
  const list = element("ul", { class: "runs", "aria-label": "Runs" })
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
      row.draw(run, shown.has(run.id), runs.length > 1)
    }
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

  draw(run: RunInfo, shown: boolean, several: boolean): void {
    this.#box.hidden = !several
    this.#box.checked = shown
    this.item.dataset.state = run.state
    if (shown)
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

/** State of a run in words: "running · 12 of 150 · 3 h 10 min left · success 43.0 %". */
export function describeRun(run: RunInfo, reports: readonly IterationReport[]): string {
  const { state, iteration, iterations, secondsLeft } = run
  return [
    state,
    iterations === undefined ? `iteration ${iteration}` : `${iteration} of ${iterations}`,
    ...(state === "running" && secondsLeft !== undefined ? [`${formatDuration(secondsLeft)} left`] : []),
    ...successOf(reports),
  ].join(" · ")
}

/** Success rate of the last evaluation that has one, or else of the last iteration. */
function successOf(reports: readonly IterationReport[]): string[] {
  const evaluated = reports.findLast(({ evaluation }) => evaluation?.metrics.success !== undefined)?.evaluation
  const success = evaluated?.success ?? reports.at(-1)?.metrics["episode/success"]
  return success === undefined ? [] : [`success ${formatShare(success)}`]
}
