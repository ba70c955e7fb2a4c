import type uPlot from "uplot"
import type { CurveEvent, Marks } from "../../data/curves.ts"
import { element } from "../element.ts"
import { colour } from "../theme.ts"

/** Names of events, in the order of the legend. */
const names: Readonly<Record<CurveEvent, string>> = {
  warned: "warning of a guard",
  resumed: "resumed or forked before this iteration",
  saved: "checkpoint",
}

/** Legend of the marks that the curves have; hidden without marks. */
export class MarkLegend {
  readonly root: HTMLElement = element("ul", { class: "marks", "aria-label": "Marks in the curves" })

  show(marks: Marks): void {
    const shown = (Object.keys(names) as CurveEvent[]).filter((event) => marks[event].length > 0)
    this.root.hidden = shown.length === 0
    const items = shown.map((event) => element("li", {}, element("span", { class: `mark-${event}` }), names[event]))
    this.root.replaceChildren(...items)
  }
}

/** Draws a dashed line for a warning, a solid line for a resumption, and a triangle at the lower edge for a checkpoint. */
export function drawMarks({ ctx, bbox, valToPos }: uPlot, { warned, resumed, saved }: Marks): void {
  const [bottom, size] = [bbox.top + bbox.height, 4 * devicePixelRatio]
  const inSight = (places: readonly number[]) =>
    places.map((place) => valToPos(place, "x", true)).filter((x) => x >= bbox.left && x <= bbox.left + bbox.width)
  ctx.save() // uPlot remembers the styles that it has set
  ctx.lineWidth = devicePixelRatio
  const lines = (places: readonly number[], style: string, dash: number[]) => {
    ctx.strokeStyle = style
    ctx.setLineDash(dash)
    ctx.beginPath()
    for (const x of inSight(places)) {
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bottom)
    }
    ctx.stroke()
  }
  lines(warned, colour("warning", 60), [4 * devicePixelRatio, 3 * devicePixelRatio])
  lines(resumed, colour("faint"), [])
  ctx.fillStyle = colour("faint")
  ctx.beginPath()
  for (const x of inSight(saved)) {
    ctx.moveTo(x - size, bottom)
    ctx.lineTo(x + size, bottom)
    ctx.lineTo(x, bottom - 1.5 * size)
  }
  ctx.fill()
  ctx.restore()
}
