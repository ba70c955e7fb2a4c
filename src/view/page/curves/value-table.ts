import type { Child } from "../element.ts"
import { element } from "../element.ts"

/** Maximum number of rows drawn at once. */
const most = 200

export interface Rows {
  readonly head: readonly string[]
  readonly count: number
  row(place: number): readonly string[]
}

/** Foldable table of a chart's values. The last rows are shown first, the others by a button. */
export class ValueTable {
  readonly details: HTMLDetailsElement
  readonly #name: string
  readonly #holder: HTMLElement
  #rows: Rows | undefined
  #most = most

  constructor(name: string) {
    this.#name = name
    this.#holder = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Values of ${name}` })
    const summary = element("summary", {}, "Values", element("span", { class: "unseen" }, ` of ${name}`))
    this.details = element("details", { toggle: () => this.#draw() }, summary, this.#holder)
  }

  show(rows: Rows): void {
    this.#rows = rows
    this.#draw()
  }

  #draw(): void {
    if (!this.details.open || !this.#rows) return
    const { head, count, row } = this.#rows
    const first = Math.max(count - this.#most, 0)
    const body = Array.from({ length: count - first }, (_, at) => {
      const [place, ...values] = row(first + at)
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, place),
        ...values.map((value) => element("td", {}, value)),
      )
    })
    const more: Child =
      first > 0 && element("button", { click: () => this.#more() }, `Show more (${first} earlier rows)`)
    const columns = element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))
    const table = element("table", {}, element("caption", { class: "unseen" }, this.#name))
    table.append(element("thead", {}, columns), element("tbody", {}, ...body))
    this.#holder.replaceChildren(...(more ? [more] : []), table)
  }

  #more(): void {
    this.#most += most
    this.#draw()
  }
}
