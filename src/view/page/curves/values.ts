import { element } from "../element.ts"
import { runSwatch } from "../run-mark.ts"
import type { ShownRun } from "./shown-run.ts"

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
