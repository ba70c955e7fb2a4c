import type uPlot from "uplot"
import { formatNumber } from "../../../util/format.ts"
import type { Along } from "../../data/curves.ts"
import { colour } from "../theme.ts"
import { placeTick } from "./place.ts"

const font = "12px system-ui, sans-serif"

/** Axes of a chart: x, then y. */
export function axes(along: Along, logarithmic: boolean): uPlot.Axis[] {
  const lines = { stroke: () => colour("line"), width: 1 }
  const common = { font, stroke: () => colour("faint"), grid: lines, ticks: { ...lines, size: 4 } }
  return [
    { ...common, space: 60, size: 28, values: (_, splits) => splits.map((at) => placeTick(along, at)), incrs: steps },
    {
      ...common,
      space: 32,
      size: 52,
      values: (_, splits, __, ___, step) =>
        splits.map((at) => (at === null ? null : logarithmic ? formatNumber(at) : tick(at, step))),
    },
  ]
}

/** Possible distances of ticks on the x-axis: iterations, or seconds up to a week. */
const steps = [1, 2, 5, 10, 20, 50, 100, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800]

/** Label of a tick, with as many digits as the distance between ticks needs. */
function tick(value: number, step: number): string {
  if (value !== 0 && (step < 1e-5 || Math.abs(value) >= 1e6)) return value.toExponential(1)
  let digits = 0
  while (digits < 5 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
