import { formatDuration, formatShare } from "../../../util/format.ts"
import { meanParts, timeParts } from "../../data/time-parts.ts"
import { element } from "../element.ts"
import { partSwatch, runMark, runSwatch } from "../run-mark.ts"
import type { Board } from "./board.ts"
import { Chart } from "./chart.ts"
import type { ShownRun } from "./shown-run.ts"

/** Descriptions of time parts that are not measured directly. */
const meanings: Readonly<Record<string, string>> = {
  other: "other work of the iteration",
  between: "between iterations (evaluation, checkpoints)",
}

/** Time of a run's iterations by part: a stacked chart, and a table of means and shares. */
export class TimesCard {
  readonly card: HTMLElement
  readonly #chart: Chart
  readonly #body: HTMLElement = element("tbody")
  readonly #at: HTMLElement = element("th", { scope: "col" })

  constructor({ name, place }: ShownRun, board: Board, signal: AbortSignal, several: boolean) {
    this.#chart = new Chart(`Seconds of each iteration of ${name}`, board, signal, { height: 220 })
    const title = element("h3", {}, "Time of each iteration", ...(several ? [runSwatch(place), name] : []))
    const columns = ["part", "mean", "share"].map((text) => element("th", { scope: "col" }, text))
    const head = element("thead", {}, element("tr", {}, ...columns, this.#at))
    const table = element("table", {}, element("caption", { class: "unseen" }, `Times of ${name}`), head, this.#body)
    this.card = element(
      "article",
      { class: "card times" },
      title,
      element("div", { class: "split" }, this.#chart.area, table),
    )
  }

  end(): void {
    this.#chart.end()
    this.card.remove()
  }

  draw({ reports }: ShownRun): void {
    const times = timeParts(reports)
    const { iterations, parts } = times
    this.card.hidden = parts.length === 0
    if (parts.length === 0) return
    const cells = meanParts(times).map(({ name, mean, share }, part) => {
      const now = element("td")
      const label = element("th", { scope: "row" }, partSwatch(part), meanings[name] ?? name)
      this.#body.append(
        element("tr", {}, label, element("td", {}, formatDuration(mean)), element("td", {}, formatShare(share)), now),
      )
      return now
    })
    this.#body.replaceChildren(...cells.map((cell) => cell.parentElement!))
    // Each area is the sum of its part and the parts before it. The largest is drawn first, so that it does not cover the others.
    const sums = iterations.map(() => 0)
    const tops = parts.map(({ seconds }, part) => {
      for (const [at, second] of seconds.entries()) sums[at]! += second
      return { values: [...sums], colour: runMark(part).colour, filled: true }
    })
    this.#chart.draw({
      along: iterations,
      lines: tops.reverse(),
      bands: [],
      logarithmic: false,
      kind: "iteration",
      read: (given) => {
        const place = given ?? iterations.length - 1
        this.#at.textContent = `iteration ${iterations[place]}`
        const texts = parts.map(({ seconds }) => formatDuration(seconds[place]!))
        for (const [part, text] of texts.entries()) cells[part]!.textContent = text
        return parts.map(({ name }, part) => `${name} ${texts[part]}`).join(", ")
      },
    })
  }
}
