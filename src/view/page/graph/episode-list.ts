import { endings, type StateGraph } from "../../data/graph.ts"
import { element } from "../element.ts"
import { counted, short } from "../numbers.ts"
import { oneLine } from "./short-names.ts"

const titles = { success: "Success", failure: "Failure", ended: "Ended", failed: "Failed" } as const

/**
 * List of paths by ending, best first. A path is highlighted while pointed at or focused, and stays highlighted when selected.
 */
export function episodeList(
  { paths }: StateGraph,
  kept: Set<number>,
  tell: { readonly point: (path: number | undefined) => void; readonly keep: () => void },
): HTMLElement {
  // An agent or conversation is named if there are several.
  const labels = (["agent", "conversation"] as const).filter((name) =>
    paths.some((path) => path[name] !== paths[0]![name]),
  )
  const item = (at: number) => {
    const path = paths[at]!
    const parts = labels.map((name) => path[name]).filter((part) => part !== undefined)
    const button = element(
      "button",
      {
        type: "button",
        "aria-pressed": String(kept.has(at)),
        "data-path": at,
        pointerenter: () => tell.point(at),
        focus: () => tell.point(at),
        pointerleave: () => tell.point(undefined),
        blur: () => tell.point(undefined),
        click: () => {
          if (!kept.delete(at)) kept.add(at)
          button.setAttribute("aria-pressed", String(kept.has(at)))
          tell.keep()
        },
      },
      element("span", { class: `dot ${path.ending}`, "aria-hidden": "true" }),
      element(
        "span",
        { class: "who" },
        `Episode ${path.member}`,
        parts.length > 0 &&
          element("span", { class: "faint" }, parts.map((part) => oneLine(String(part), 24)).join(" · ")),
      ),
      element("span", { class: "faint" }, counted(path.steps.length, "step")),
      element("span", { class: "number" }, short(path.return)),
    )
    return element("li", {}, button)
  }
  const best = paths.map((_, at) => at).sort((a, b) => paths[b]!.return - paths[a]!.return || a - b)
  const parts = endings.flatMap((ending) => {
    const own = best.filter((at) => paths[at]!.ending === ending)
    if (own.length === 0) return []
    return [
      element("h4", {}, titles[ending], element("span", { class: "faint" }, ` ${own.length}`)),
      element("ul", {}, ...own.map(item)),
    ]
  })
  return element(
    "section",
    { class: "paths", "aria-label": "Episodes" },
    element("h3", {}, "Episodes", element("span", { class: "faint" }, " return")),
    ...parts,
  )
}
