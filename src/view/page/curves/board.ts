type Range = readonly [from: number, to: number]

/** Chart on a board. */
export interface Charted {
  /** Shows the values at a place of the x-axis; the last values if undefined. */
  point(at: number | undefined): void
  /** Shows the board's range. */
  zoom(): void
}

/** Common state of charts: the visible range, and the place at which values are read. */
export class Board {
  readonly #charts = new Set<Charted>()
  #whole: Range = [0, 1]
  #window: Range | undefined
  #at: number | undefined

  get at(): number | undefined {
    return this.#at
  }

  get range(): Range {
    return this.#window ?? this.#whole
  }

  get zoomed(): boolean {
    return this.#window !== undefined
  }

  /** Called whenever the range changes. */
  onZoom: () => void = () => {}

  add(chart: Charted): void {
    this.#charts.add(chart)
  }

  remove(chart: Charted): void {
    this.#charts.delete(chart)
  }

  /** Range of all values. The zoomed range is kept. */
  set whole([from, to]: Range) {
    const whole: Range = from < to ? [from, to] : [from - 0.5, from + 0.5]
    if (whole[0] === this.#whole[0] && whole[1] === this.#whole[1]) return
    this.#whole = whole
    for (const chart of this.#charts) chart.zoom()
  }

  /** @param by - chart that already shows the place */
  point(at: number | undefined, by?: Charted): void {
    if (at === this.#at) return
    this.#at = at
    for (const chart of this.#charts) if (chart !== by) chart.point(at)
  }

  /** Zooms to a range, limited to the range of all values, and to at least a thousandth of it. */
  zoom(from: number, to: number): void {
    const [first, last] = this.#whole
    const width = Math.min(Math.max(to - from, (last - first) / 1000), last - first)
    const start = Math.min(Math.max(from, first), last - width)
    this.#window = width < last - first ? [start, start + width] : undefined
    this.#changed()
  }

  reset(): void {
    this.#window = undefined
    this.#changed()
  }

  /** Scales the visible range by `factor` around the current place, or the middle. */
  scale(factor: number): void {
    const [from, to] = this.range
    const about = this.#at !== undefined && this.#at >= from && this.#at <= to ? this.#at : (from + to) / 2
    this.zoom(about - (about - from) * factor, about + (to - about) * factor)
  }

  /** Moves the visible range by a share of its width. */
  pan(share: number): void {
    const [from, to] = this.range
    this.zoom(from + (to - from) * share, to + (to - from) * share)
  }

  #changed(): void {
    for (const chart of this.#charts) chart.zoom()
    this.onZoom()
  }
}
