import { metricTitle } from "../../../runs/metrics.ts"
import { visible } from "../../../util/visible.ts"
import { sectionNames, sectionOf } from "../../data/metrics.ts"
import { element } from "../element.ts"
import type { Board } from "./board.ts"
import type { Choice } from "./choice.ts"

/** Controls of the curves; `choose` is called with each change. */
export function controls(choice: Choice, board: Board, choose: (change: Partial<Choice>) => void): HTMLElement {
  const along = element(
    "select",
    { change: () => choose({ along: along.value === "time" ? "time" : "iteration" }) },
    element("option", { value: "iteration" }, "iteration"),
    element("option", { value: "time" }, "time"),
  )
  along.value = choice.along
  const weight = element("output", {}, choice.smoothing.toFixed(2))
  const smoothing = element("input", {
    type: "range",
    min: 0,
    max: 0.99,
    step: 0.01,
    value: choice.smoothing,
    input() {
      weight.textContent = Number(smoothing.value).toFixed(2)
      choose({ smoothing: Number(smoothing.value) })
    },
  })
  const logarithmic = element("input", {
    type: "checkbox",
    checked: choice.logarithmic,
    change: () => choose({ logarithmic: logarithmic.checked }),
  })
  const whole = element("button", { disabled: true, click: () => board.reset() }, "Show all")
  board.onZoom = () => {
    whole.disabled = !board.zoomed
  }
  const zoom = element(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    element("button", { "aria-label": "Zoom in", click: () => board.scale(0.5) }, "+"),
    element("button", { "aria-label": "Zoom out", click: () => board.scale(2) }, "−"),
    whole,
  )
  return element(
    "div",
    { class: "controls" },
    element("label", {}, "x-axis ", along),
    element("label", {}, "Smoothing ", smoothing, weight),
    element("label", {}, logarithmic, " Logarithmic"),
    zoom,
  )
}

/** Choice of metrics by section, with a search by name or title. */
export class MetricChoice {
  readonly details: HTMLDetailsElement
  readonly #choose: (name: string, shown: boolean) => void
  readonly #list: HTMLElement = element("div", { class: "groups" })
  readonly #search: HTMLInputElement
  readonly #found: HTMLElement = element("p", { role: "status", class: "unseen" })
  readonly #boxes = new Map<string, HTMLInputElement>()
  #names: ReadonlySet<string> = new Set()
  #shown: readonly string[] = []

  constructor(choose: (name: string, shown: boolean) => void, reset: () => void) {
    this.#choose = choose
    this.#search = element("input", { type: "search", placeholder: "part of a name", input: () => this.#filter() })
    const first = element("button", { click: reset }, "Reset")
    const search = element("div", { class: "search" }, element("label", {}, "Find ", this.#search), first, this.#found)
    this.details = element(
      "details",
      { class: "choice", toggle: () => this.#fill() },
      element("summary", {}, "Metrics"),
      search,
      this.#list,
    )
  }

  show(names: ReadonlySet<string>, shown: readonly string[]): void {
    this.#names = names
    this.#shown = shown
    this.details.firstElementChild!.textContent = `Metrics: ${shown.length} of ${names.size} shown`
    this.#fill()
  }

  /** Fills the list when it is first opened. */
  #fill(): void {
    if (!this.details.open) return
    const names = this.#names
    if (this.#boxes.size !== names.size || [...names].some((name) => !this.#boxes.has(name))) this.#make(names)
    for (const [name, box] of this.#boxes) box.checked = this.#shown.includes(name)
  }

  #make(names: ReadonlySet<string>): void {
    this.#boxes.clear()
    const fieldsets = sectionNames.flatMap((section) => {
      const own = [...names].filter((name) => sectionOf(name) === section).sort()
      const labels = own.map((name) => {
        const box = element("input", { type: "checkbox", change: () => this.#choose(name, box.checked) })
        this.#boxes.set(name, box)
        return element("label", { title: visible(name) }, box, visible(metricTitle(name)))
      })
      return own.length > 0 ? [element("fieldset", {}, element("legend", {}, section), ...labels)] : []
    })
    this.#list.replaceChildren(...fieldsets)
    this.#filter()
  }

  #filter(): void {
    const wanted = this.#search.value.trim().toLowerCase()
    let found = 0
    for (const [name, box] of this.#boxes) {
      const hidden = ![name, metricTitle(name)].some((text) => text.toLowerCase().includes(wanted))
      box.parentElement!.hidden = hidden
      if (!hidden) found += 1
    }
    for (const group of this.#list.querySelectorAll("fieldset"))
      group.hidden = group.querySelector("label:not([hidden])") === null
    this.#found.textContent = wanted === "" ? "" : `${found} metrics found`
  }
}
