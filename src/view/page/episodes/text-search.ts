import { episodeName } from "../../data/episode-filter.ts"
import type { Found, RunInfo } from "../../data/source.ts"
import { element } from "../element.ts"
import { counted } from "../numbers.ts"
import type { PageContext } from "../view.ts"

/** Search in the texts of episodes. */
export interface TextSearch {
  readonly root: HTMLElement
  /** Searched text; empty without a search. */
  readonly text: string
  /** First matching step by the name of the episode; undefined without a search. */
  found(): ReadonlyMap<string, number> | undefined
  /** Searches for the text of the address. */
  start(text: string): void
}

/** @param tell - called when the search or its results have changed */
export function textSearch(run: RunInfo, { source, signal }: PageContext, tell: () => void): TextSearch {
  let text = ""
  let found: Map<string, number> | undefined
  let next: number | undefined
  let latest = 0
  const input = element("input", {
    type: "search",
    placeholder: "observation, completion or action",
    "aria-label": "Text",
  })
  const status = element("span", { role: "status", class: "faint" })
  const more = element(
    "button",
    { type: "button", hidden: true, click: () => void search() },
    "Search earlier iterations",
  )
  const show = (words: string) => {
    status.textContent = words
    more.hidden = next === undefined
    tell()
  }
  const begin = (wanted: string) => {
    text = wanted.trim()
    next = undefined
    latest++
    found = text === "" ? undefined : new Map()
    if (text === "") show("")
    else void search()
  }
  const search = async () => {
    const mine = ++latest
    status.textContent = "Searching …"
    try {
      const part = await source.search(run.id, text, next, signal)
      if (mine !== latest || signal.aborted) return
      add(part ?? { matches: [] })
    } catch (error) {
      if (mine === latest && !signal.aborted) show(error instanceof Error ? error.message : String(error))
    }
  }
  const add = (part: Found) => {
    for (const { iteration, group, member, step } of part.matches)
      found?.set(episodeName(iteration, group, member), step)
    next = part.next
    const where = next === undefined ? "" : ` from iteration ${next} on`
    show(`${counted(found?.size ?? 0, "episode")} found${where}.`)
  }
  const root = element(
    "form",
    {
      class: "texts",
      role: "search",
      "aria-label": "Search texts",
      submit: (event) => {
        event.preventDefault()
        begin(input.value)
      },
    },
    element("label", {}, "Text ", input),
    element("button", {}, "Search"),
    status,
    more,
  )
  // The field's own button clears the search.
  input.addEventListener("search", () => input.value === "" && text !== "" && begin(""))
  return {
    root,
    get text() {
      return text
    },
    found: () => found,
    start(wanted) {
      input.value = wanted
      begin(wanted)
    },
  }
}
