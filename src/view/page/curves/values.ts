import { formatNumber } from "../../../util/format.ts"
import { type Curves, lastKnown, nearestKnown } from "../../data/curves.ts"
import { element } from "../element.ts"
import { runSwatch } from "../run-mark.ts"
import type { ShownRun } from "./shown-run.ts"

/**
 * Value with its confidence interval, "0.43 (0.35 to 0.52)"; a dash if there is no value.
 *
 * @param place - index in `along`. Default: the last value
 */
export function valueInWords({ values, intervals }: Curves, run: number, place?: number): string {
  const column = values[run]!
  const known = place === undefined ? lastKnown(column) : nearestKnown(column, place)
  if (known === undefined) return "–"
  const interval = intervals?.[run]
  const [low, high] = [interval?.low[known], interval?.high[known]]
  const within =
    typeof low === "number" && typeof high === "number" ? ` (${formatNumber(low)} to ${formatNumber(high)})` : ""
  return formatNumber(column[known]!) + within
}

/** List of the runs' values at one place, each next to the run's swatch. */
export class Readout {
  readonly list: HTMLElement = element("ul", { class: "values" })
  #runs = ""
  #values: HTMLElement[] = []

  show(runs: readonly ShownRun[], values: readonly string[]): void {
    const shape = JSON.stringify(runs.map(({ name, place }) => [name, place]))
    if (shape !== this.#runs) {
      this.#runs = shape
      this.#values = runs.map(() => element("span", { class: "value" }))
      const items = runs.map(({ name, place }, run) =>
        element(
          "li",
          {},
          runSwatch(place),
          runs.length > 1 && element("span", { class: "name" }, name),
          this.#values[run],
        ),
      )
      this.list.replaceChildren(...items)
    }
    for (const [run, value] of values.entries()) {
      const shown = this.#values[run]!
      if (shown.textContent !== value) shown.textContent = value
    }
  }
}
