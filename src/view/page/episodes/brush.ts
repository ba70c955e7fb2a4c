import type { Bars } from "../../data/episode-bars.ts"
import { open, type Range } from "../../data/episode-filter.ts"
import { drawing, element } from "../element.ts"

interface BrushSetup {
  readonly title: string
  /** Label of the full height of a bar. */
  readonly full: string
  readonly bars: Bars
  /** Indices of all episodes. Their bars are drawn behind those of the selected episodes. */
  readonly all: Uint32Array
  /** Labels of both ends of the axis. */
  readonly ends: readonly [string, string]
  /** Called with each range that the user selects. */
  ask(range: Range): void
}

export interface Brush {
  readonly root: HTMLElement
  show(selected: Uint32Array, range: Range): void
}

/**
 * Bar chart in which a range is selected: by dragging, or a single bar by a click. A click inside the selected range clears the selection.
 * The input fields of the filters do the same by keyboard.
 */
export function brush({ title, full, bars, all, ends, ask }: BrushSetup): Brush {
  const { edges } = bars
  const count = edges.length - 1
  const [first, last] = [edges[0] ?? 0, edges[count] ?? 0]
  const selected = drawing("path", { class: "selected" })
  const frame = drawing("rect", { class: "range", y: 0, height: 100 })
  const svg = drawing(
    "svg",
    { viewBox: `0 0 ${Math.max(count, 1)} 100`, preserveAspectRatio: "none", role: "img" },
    drawing("path", { class: "all", d: outline(bars.heights(all)) }),
    frame,
    selected,
  )
  const barAt = ({ clientX }: PointerEvent) => {
    const { left, width } = svg.getBoundingClientRect()
    return Math.max(0, Math.min(Math.floor(((clientX - left) / width) * count), count - 1))
  }
  let wanted = open
  let drag: { readonly from: number; to: number; readonly clears: boolean } | undefined
  const dragTo = (bar: number) => {
    if (!drag || bar === drag.to) return
    drag.to = bar
    ask([edges[Math.min(drag.from, bar)]!, edges[Math.max(drag.from, bar) + 1]!])
  }
  svg.addEventListener("pointerdown", (event) => {
    if (count === 0 || event.button !== 0) return
    svg.setPointerCapture(event.pointerId)
    const from = barAt(event)
    const clears = wanted !== open && edges[from]! >= wanted[0] && edges[from + 1]! <= wanted[1]
    drag = { from, to: clears ? from : -1, clears }
    dragTo(from)
  })
  svg.addEventListener("pointermove", (event) => dragTo(barAt(event)))
  svg.addEventListener("pointerup", () => {
    if (drag?.clears && drag.to === drag.from) ask(open)
    drag = undefined
  })
  return {
    root: element(
      "figure",
      { class: "brush" },
      element("figcaption", {}, title, element("span", {}, full)),
      svg,
      element("div", { class: "ends" }, ...ends.map((end) => element("span", {}, end))),
    ),
    show(places, range) {
      wanted = range.some(Number.isFinite) ? range : open
      const place = (value: number) => ((Math.max(first, Math.min(value, last)) - first) / (last - first || 1)) * count
      selected.setAttribute("d", outline(bars.heights(places)))
      frame.setAttribute("x", String(place(range[0])))
      frame.setAttribute("width", String(wanted === open ? 0 : place(range[1]) - place(range[0])))
      svg.setAttribute("aria-label", `${title}, from ${ends[0]} to ${ends[1]}`)
    },
  }
}

function outline(heights: Float64Array): string {
  let path = ""
  for (const [at, height] of heights.entries())
    if (height > 0) path += `M${at + 0.08} 100V${(100 - 100 * height).toFixed(1)}h.84V100z`
  return path
}
