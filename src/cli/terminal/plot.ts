/** Bits of a braille character, by column and row. */
const dots = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const
const blank = 0x2800
const [across, down] = [dots.length, dots[0].length]

export interface PlotShape {
  /** Characters per line, including labels. */
  readonly width: number
  /** Lines, without the x axis. */
  readonly height: number
  /** Bounds of the y axis. Default: the range of the points. */
  readonly range?: readonly [low: number, high: number]
  readonly label: (value: number) => string
}

/** Draws a line through points with ascending x in braille characters, each two dots wide and four high. */
export function plot(points: readonly (readonly [x: number, y: number])[], shape: PlotShape): string[] {
  const finite = points.filter(([, y]) => Number.isFinite(y))
  if (finite.length === 0) return []
  const [low, high] = shape.range ?? rangeOf(finite.map(([, y]) => y))
  const labels = [shape.label(high), shape.label(low)] as const
  const margin = Math.max(...labels.map(({ length }) => length))
  const columns = shape.width - margin - 1
  if (columns < 1) return []
  const heights = columnMeans(finite, columns * across).map((y) => {
    const share = Math.min(Math.max((y - low) / (high - low), 0), 1)
    return Math.round((1 - share) * (shape.height * down - 1))
  })
  const cells = draw(heights, columns, shape.height)
  const axis = (row: number) => {
    const label = row === shape.height - 1 ? labels[1] : row === 0 ? labels[0] : undefined
    return `${(label ?? "").padStart(margin)}${label === undefined ? "│" : "┤"}`
  }
  const [from, to] = [String(finite[0]![0]), String(finite.at(-1)![0])]
  const ends = from === to ? from : `${from}${"─".repeat(Math.max(columns - from.length - to.length, 1))}${to}`
  return [...cells.map((line, row) => axis(row) + line), `${" ".repeat(margin)}└${ends}`]
}

/** Range of the values, widened if they are all equal. */
function rangeOf(values: readonly number[]): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const around = low === high ? Math.abs(low) / 10 || 1 : 0
  return [low - around, high + around]
}

/** Mean of the points in each column of dots up to the last point; columns without points are interpolated. */
function columnMeans(points: readonly (readonly [x: number, y: number])[], columns: number): number[] {
  const [first, last] = [points[0]![0], points.at(-1)![0]]
  const scale = last > first ? (columns - 1) / (last - first) : 0
  const gathered = new Map<number, { sum: number; count: number }>()
  for (const [x, y] of points) {
    const column = Math.round((x - first) * scale)
    const { sum, count } = gathered.get(column) ?? { sum: 0, count: 0 }
    gathered.set(column, { sum: sum + y, count: count + 1 })
  }
  const known = [...gathered].map(([column, { sum, count }]) => [column, sum / count] as const)
  return known.flatMap(([column, mean], at) => {
    const [before, start] = known[at - 1] ?? [column - 1, mean]
    return Array.from(
      { length: column - before },
      (_, step) => start + ((mean - start) * (step + 1)) / (column - before),
    )
  })
}

/** Draws columns, each connected to the previous one, so that a steep line has no gaps. */
function draw(heights: readonly number[], columns: number, rows: number): string[] {
  const cells = Array.from({ length: rows }, () => new Uint8Array(columns))
  for (const [at, height] of heights.entries()) {
    const before = heights[at - 1] ?? height
    const next = before + Math.sign(height - before)
    for (let dot = Math.min(next, height); dot <= Math.max(next, height); dot++)
      cells[Math.floor(dot / down)]![Math.floor(at / across)]! |= dots[at % across]![dot % down]!
  }
  return cells.map((line) => String.fromCodePoint(...[...line].map((set) => blank + set)).replace(/\u2800+$/, ""))
}
