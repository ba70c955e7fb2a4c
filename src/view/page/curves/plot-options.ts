import type uPlot from "uplot"
import { type Along, type Column, type Marks, nearestKnown } from "../../data/curves.ts"
import { element } from "../element.ts"
import { colour } from "../theme.ts"
import { axes } from "./axes.ts"
import { drawMarks } from "./marks.ts"

export interface Line {
  /** Values. Null interrupts the line, undefined does not. */
  readonly values: readonly (number | null | undefined)[]
  /** Indices in `along` of NaN and infinite values, which are marked. */
  readonly nonFinite?: ReadonlySet<number>
  /** Name of a colour in main.css, without dashes. */
  readonly colour: string
  readonly dash?: readonly number[]
  /** Whether the line is drawn thin and pale, for example the original behind a smoothed curve. */
  readonly faint?: boolean
  /** Whether the area below the line is filled. */
  readonly filled?: boolean
  /** Whether the line is invisible because it is only the edge of a band. */
  readonly edge?: boolean
}

export interface Drawn {
  readonly along: readonly number[]
  readonly lines: readonly Line[]
  /** Filled bands between two lines, by their indices. */
  readonly bands: readonly { readonly high: number; readonly low: number }[]
  readonly logarithmic: boolean
  /** Limits of the values. */
  readonly limits?: readonly [number, number]
  /** Whether the y-axis shows the whole range between the limits. */
  readonly isWhole?: boolean
  /** Whether the values are shares, which are labelled in percent. */
  readonly isShare?: boolean
  readonly kind: Along
  /** Places of events. */
  readonly marks?: Marks
  /** Shows the values at an index in `along`, or the last values, next to the chart. Returns them as text for screen readers. */
  readonly read: (place?: number) => string
}

/** Handlers of pointing, dragging and double clicks. */
export interface PointerEvents {
  /** Called with the place under the pointer; undefined after the pointer has left. */
  point(at: number | undefined): void
  zoom(from: number, to: number): void
  reset(): void
}

export function plotOptions(
  { lines, bands, logarithmic, limits = [-Infinity, Infinity], isWhole, isShare, kind, marks }: Drawn,
  size: { readonly width: number; readonly height: number },
  on: PointerEvents,
): uPlot.Options {
  const filled = lines.some((line) => line.filled)
  const pointed = ({ edge, faint, filled }: Line) => !(edge || faint || filled)
  const zoomTo = ({ select, posToVal }: uPlot) => {
    if (select.width < 3) return
    on.zoom(posToVal(select.left, "x"), posToVal(select.left + select.width, "x"))
  }
  return {
    ...size,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false },
      y: {
        distr: logarithmic ? 3 : 1,
        // Filled areas start at 0. Lines have a free range within the limits of their values.
        ...(filled
          ? { range: (_, __, highest) => [0, highest > 0 ? highest * 1.05 : 1] }
          : !logarithmic && isWhole
            ? { range: () => [limits[0] - edge, limits[1] + edge] as [number, number] }
            : !logarithmic && { range: { min: { ...soft, hard: limits[0] }, max: { ...soft, hard: limits[1] } } }),
      },
    },
    axes: axes(kind, logarithmic, isShare),
    series: [{}, ...lines.map(seriesOf)],
    bands: bands.map(({ high, low }) => ({
      series: [high + 1, low + 1],
      fill: () => colour(lines[high]!.colour, 16),
    })),
    cursor: {
      y: false,
      drag: { setScale: false, x: true, y: false },
      dataIdx: (plot, series, closest) => nearestKnown(plot.data[series] as Column, closest) ?? null,
      points: {
        size: 7,
        width: 1.5,
        fill: (_, series) => colour(lines[series - 1]!.colour),
        stroke: () => colour("ground"),
        show: (_, series) => (pointed(lines[series - 1]!) ? element("div") : false) as HTMLElement,
      },
      bind: {
        dblclick: () => () => {
          on.reset()
          return null
        },
      },
    },
    hooks: {
      drawClear: [(plot) => marks && drawMarks(plot, marks)],
      draw: [(plot) => markNonFinite(plot, lines)],
      setSelect: [
        (plot) => {
          zoomTo(plot)
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
      setCursor: [
        (plot) => {
          const { left = -1, idx } = plot.cursor
          on.point(left < 0 || idx == null ? undefined : plot.data[0][idx])
        },
      ],
    },
  }
}

/** Margin beyond the limits of a whole range, so that lines at the limits are not cut. */
const edge = 0.02

/** Margin of 10 % at both ends, and a range that extends to 0 if 0 is near. */
const soft = { pad: 0.1, soft: 0, mode: 3 } as const

function seriesOf({ colour: name, dash, faint, filled, edge }: Line): uPlot.Series {
  return {
    stroke: () => (edge ? "transparent" : filled ? colour("ground") : colour(name, faint ? 30 : 100)),
    width: faint || filled ? 1 : 2,
    spanGaps: false,
    ...(dash && !faint && { dash: [...dash] }),
    ...(filled && { fill: () => colour(name) }),
    points: edge || faint || filled ? { show: false } : { fill: () => colour("ground"), size: 6 },
  }
}

/** Marks NaN and infinite values with a cross at the lower edge, where they have no place on the axis. */
function markNonFinite({ ctx, bbox, data, valToPos }: uPlot, lines: readonly Line[]): void {
  const size = 4 * devicePixelRatio
  ctx.save()
  for (const { nonFinite = [], colour: name } of lines) {
    ctx.strokeStyle = colour(name)
    ctx.lineWidth = 2 * devicePixelRatio
    ctx.beginPath()
    for (const place of nonFinite) {
      const [x, y] = [valToPos(data[0][place]!, "x", true), bbox.top + bbox.height - 2 * size]
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      ctx.moveTo(x - size, y - size)
      ctx.lineTo(x + size, y + size)
      ctx.moveTo(x - size, y + size)
      ctx.lineTo(x + size, y - size)
    }
    ctx.stroke()
  }
  ctx.restore()
}
