import { outcomes, results } from "../../../rollout/outcome.ts"
import { type EpisodeFilter, open, type Range } from "../../data/episode-filter.ts"
import { type EpisodeTable, type Mark, marks } from "../../data/episode-table.ts"
import { element } from "../element.ts"

const resultTitles = { success: "Success", failure: "Failure", untold: "Unknown" }
const markTitles: Readonly<Record<Mark, string>> = {
  mixed: "Different returns in the group",
  loop: "Loops",
  invalid: "Invalid actions",
  truncated: "Truncated completions",
  rejected: "Rejected calls or actions",
}
const rangeTitles = { iteration: "Iteration", return: "Return", steps: "Steps" }
type RangeName = keyof typeof rangeTitles

export interface Filters {
  readonly root: HTMLElement
  /** Shows the filter, and the number of episodes of each kind. */
  show(filter: EpisodeFilter, table: EpisodeTable): void
}

/** Form above the list; `ask` is called with each change. */
export function filters(ask: (change: Partial<EpisodeFilter>) => void): Filters {
  const search = element("input", {
    type: "search",
    placeholder: "part of the task",
    input: () => ask({ task: search.value }),
  })
  const range = (name: RangeName) => {
    const bound = (says: string) =>
      element("input", { type: "number", step: "any", "aria-label": `${rangeTitles[name]} ${says}`, input: read })
    const read = () => ask({ [name]: [fieldBound(from, open[0]), fieldBound(to, open[1])] })
    const [from, to] = [bound("from"), bound("to")]
    return { from, to, root: fieldset(rangeTitles[name], "range", from, "–", to) }
  }
  const ranges = { iteration: range("iteration"), return: range("return"), steps: range("steps") }
  const chips = <Name extends string>(names: readonly Name[], says: (name: Name) => string, key: string) => {
    const all = names.map((name) => {
      const box = element("input", { type: "checkbox", value: name, change: () => ask({ [key]: checked() }) })
      const count = element("span", { class: "count" })
      return { name, box, count, root: element("label", { class: `chip ${name}` }, box, says(name), count) }
    })
    let [counted, counts]: [Uint8Array | undefined, Uint32Array] = [undefined, new Uint32Array()]
    const checked = () => all.filter(({ box }) => box.checked).map(({ name }) => name)
    return {
      roots: all.map(({ root }) => root),
      /** Whether there is anything to choose. */
      get isUseful() {
        return all.some(({ root }) => !root.hidden)
      },
      show(chosen: readonly Name[], places: Uint8Array, count: (values: Uint8Array, kinds: number) => Uint32Array) {
        if (places !== counted) counts = count(places, names.length)
        counted = places
        for (const [at, { name, box, count, root }] of all.entries()) {
          box.checked = chosen.includes(name)
          count.textContent = counts[at]!.toLocaleString("en")
          root.hidden = counts[at] === 0 && !box.checked
        }
      },
    }
  }
  const result = chips(results, (name) => resultTitles[name], "results")
  const outcome = chips(outcomes, (name) => name, "outcomes")
  const mark = chips(marks, (name) => markTitles[name], "marks")
  const withMarks = fieldset("With", "", ...mark.roots)
  const all = element("button", { type: "reset", class: "quiet" }, "Clear filters")
  const root = element(
    "form",
    { class: "filters", role: "search", "aria-label": "Filter episodes", submit: (event) => event.preventDefault() },
    element("label", { class: "search" }, "Task ", search),
    fieldset("Result", "", ...result.roots),
    fieldset("Outcome", "", ...outcome.roots),
    withMarks,
    ...Object.values(ranges).map(({ root }) => root),
    all,
  )
  // On a phone the filters are folded, because the list is below them.
  const folded = element(
    "details",
    { class: "folded", open: !matchMedia("(max-width: 45rem)").matches },
    element("summary", {}, "Filters"),
    root,
  )
  root.addEventListener("reset", (event) => {
    event.preventDefault()
    ask({ task: "", results: [], outcomes: [], marks: [], iteration: open, return: open, steps: open })
  })
  return {
    root: folded,
    show(filter, table) {
      setUnlessSame(search, filter.task ?? "")
      result.show(filter.results, table.result, countsOf)
      outcome.show(filter.outcomes, table.outcome, countsOf)
      mark.show(filter.marks, table.marks, bitCounts)
      withMarks.hidden = !mark.isUseful
      for (const name of ["iteration", "return", "steps"] as const)
        for (const [at, field] of [ranges[name].from, ranges[name].to].entries()) showBound(field, filter[name], at)
    },
  }
}

function fieldset(title: string, kind: string, ...children: readonly (Node | string)[]): HTMLElement {
  return element("fieldset", { class: kind }, element("legend", {}, title), ...children)
}

function countsOf(places: Uint8Array, kinds: number): Uint32Array {
  const counts = new Uint32Array(kinds)
  for (let at = 0; at < places.length; at++) counts[places[at]!]!++
  return counts
}

/** Number of values with each bit. */
function bitCounts(values: Uint8Array, bits: number): Uint32Array {
  const counts = new Uint32Array(bits)
  for (let at = 0; at < values.length; at++)
    for (let bit = 0; bit < bits; bit++) counts[bit]! += (values[at]! >> bit) & 1
  return counts
}

/** Value of a bound; NaN while the input is incomplete. */
function fieldBound({ value }: HTMLInputElement, otherwise: number): number {
  return value === "" ? otherwise : Number(value)
}

function showBound(field: HTMLInputElement, range: Range, at: number): void {
  const bound = range[at]!
  if (fieldBound(field, open[at]!) !== bound) field.value = Number.isFinite(bound) ? String(bound) : ""
}

/** Sets a value only if it differs, so that the cursor of the field does not move. */
function setUnlessSame(field: HTMLInputElement, value: string): void {
  if (field.value !== value) field.value = value
}
