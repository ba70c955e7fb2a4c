import type uPlot from "uplot"
import { formatNumber } from "../../../util/format.ts"
import type { Along } from "../../data/curves.ts"
import { colour } from "../theme.ts"
import { placeTick } from "./place.ts"

const font = "12px system-ui, sans-serif"

/** Axes of a chart: x, then y. */
export function axes(along: Along, logarithmic: boolean, isShare = false): uPlot.Axis[] {
  const lines = { stroke: () => colour("line"), width: 1 }
  const incrs = along === "time" ? seconds : counts
  const common = { font, stroke: () => colour("faint"), grid: lines, ticks: { ...lines, size: 4 } }
  return [
    { ...common, space: 60, size: 28, values: (_, splits) => splits.map((at) => placeTick(along, at)), incrs },
    {
      ...common,
      space: 32,
      size: (_, labels) => Math.max(least, widest(labels) + beside),
      values: (_, splits, __, ___, step) =>
        splits.map((at) => {
          if (at === null) return null
          if (isShare) return `${logarithmic ? formatNumber(100 * at) : tick(100 * at, 100 * step)} %`
          return logarithmic ? formatNumber(at) : tick(at, step)
        }),
    },
  ]
}

/** Possible distances of ticks in iterations. */
const counts = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()
/** Possible distances of ticks in seconds, up to a week. */
const seconds = [1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800]

/** Minimum width of the y-axis, which keeps most charts aligned, and width of tick and gap beside the labels, in pixels. */
const [least, beside] = [44, 12]
let pen: CanvasRenderingContext2D | undefined

/** Width of the widest label in pixels, in the fonts of this machine. */
function widest(labels: readonly (string | null)[] | null): number {
  pen ??= document.createElement("canvas").getContext("2d")!
  pen.font = font
  return Math.ceil(Math.max(0, ...(labels ?? []).map((label) => pen!.measureText(label ?? "").width)))
}

/** Label of a tick, with as many digits as the distance between ticks needs. */
function tick(value: number, step: number): string {
  if (value !== 0 && (step < 1e-5 || Math.abs(value) >= 1e6)) return value.toExponential(1)
  let digits = 0
  while (digits < 5 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
