import type { IterationReport } from "../../runs/report.ts"
import { formatNumber, formatShare } from "./format.ts"
import { type PlotShape, plot } from "./plot.ts"
import type { Line } from "./screen.ts"

const curves = [
  { metric: "episode/success", name: "success", range: [0, 1], label: formatShare },
  { metric: "episode/return", name: "return", label: formatNumber },
] as const satisfies readonly ({ readonly metric: string; readonly name: string } & Partial<PlotShape>)[]

const height = 5
/** Minimum and maximum characters of a plot if two are side by side. */
const [narrowest, widest] = [24, 72]
const between = "   "

/** Curves of success and return over a run, side by side. */
export class TrainingCurves {
  readonly #points: Readonly<Record<string, [x: number, y: number][]>> = Object.fromEntries(
    curves.map(({ metric }) => [metric, []]),
  )

  constructor(reports: readonly IterationReport[] = []) {
    for (const report of reports) this.add(report)
  }

  add({ iteration, metrics }: IterationReport): void {
    for (const { metric } of curves) {
      const value = metrics[metric]
      const points = this.#points[metric]!
      // An iteration is reported again if its evaluation was repeated after resumption.
      if (typeof value === "number" && (points.at(-1)?.[0] ?? -1) < iteration) points.push([iteration, value])
    }
  }

  /** Lines of the curves that fit the width. Empty with fewer than two points. */
  lines(width: number): Line[] {
    const known = curves.filter(({ metric }) => this.#points[metric]!.length > 1)
    const shown = width < 2 * narrowest + between.length ? known.slice(0, 1) : known
    const each = Math.min(Math.floor((width - between.length * (shown.length - 1)) / shown.length), widest)
    const plots = shown.map(({ metric, name, ...shape }) => {
      const rows = plot(this.#points[metric]!, { ...shape, width: each, height })
      const margin = /[┤│]/.exec(rows[0] ?? "")?.index ?? 0
      return [`${" ".repeat(margin + 1)}${name}`, ...rows]
    })
    const count = Math.max(0, ...plots.map((rows) => rows.length))
    return Array.from({ length: count }, (_, row) => ({
      text: plots
        .map((rows) => (rows[row] ?? "").padEnd(each))
        .join(between)
        .trimEnd(),
      style: "cyan" as const,
    }))
  }
}
