import uPlot from "uplot"
import { nearestPlace } from "../../data/curves.ts"
import { element } from "../element.ts"
import { Frames } from "../frames.ts"
import { onThemeChange } from "../theme.ts"
import type { Board, Charted } from "./board.ts"
import { boardKeys } from "./keys.ts"
import { placeInWords } from "./place.ts"
import { type Drawn, type PointerEvents, plotOptions } from "./plot-options.ts"

/** Line chart on a board. Drawn when first visible. Values can also be read by keyboard. */
export class Chart implements Charted {
  readonly area: HTMLElement
  readonly #board: Board
  readonly #height: number
  readonly #pointer: PointerEvents
  #drawn: Drawn | undefined
  #shape = ""
  #plot: uPlot | undefined
  #seen = false
  #changed = false

  constructor(name: string, board: Board, signal: AbortSignal, { height = 190 } = {}) {
    this.#board = board
    this.#height = height
    this.#pointer = {
      point: (at) => {
        board.point(at, this)
        this.#say()
      },
      zoom: (from, to) => board.zoom(from, to),
      reset: () => board.reset(),
    }
    this.area = element("div", {
      class: "chart",
      role: "slider",
      tabindex: 0,
      "aria-label": name,
      "aria-describedby": "chart-keys",
      keydown: (event) => boardKeys(event as KeyboardEvent, board, this.#drawn?.along ?? []),
    })
    this.area.style.minHeight = `${height}px`
    board.add(this)
    const size = new ResizeObserver(() => this.#plot?.setSize({ width: this.area.clientWidth, height }))
    const sight = new IntersectionObserver(
      (entries) => {
        this.#seen = entries.at(-1)!.isIntersecting
        if (this.#seen) this.#soon()
      },
      // Also charts that become visible soon.
      { rootMargin: "400px" },
    )
    size.observe(this.area)
    sight.observe(this.area)
    onThemeChange(() => this.#plot?.redraw(false), signal)
    signal.addEventListener("abort", () => this.end())
    this.end = () => {
      size.disconnect()
      sight.disconnect()
      board.remove(this)
      this.#plot?.destroy()
      this.#plot = undefined
    }
  }

  /** Removes the chart from the board. */
  readonly end: () => void

  draw(drawn: Drawn): void {
    this.#drawn = drawn
    this.#changed = true
    this.#say()
    if (this.#seen) this.#soon()
  }

  point(): void {
    this.#say()
    if (!this.#seen || !this.#plot) return
    const { at } = this.#board
    const left = at === undefined ? -10 : this.#plot.valToPos(at, "x")
    this.#plot.setCursor({ left, top: 0 }, false)
  }

  zoom(): void {
    this.#changed = true
    if (this.#seen) this.#soon()
  }

  #soon(): void {
    frames.add(this, () => this.#update())
  }

  #update(): void {
    const drawn = this.#drawn
    if (!drawn || !this.#changed || !this.area.isConnected) return
    this.#changed = false
    const data = [drawn.along, ...drawn.lines.map(({ values }) => values)] as unknown as uPlot.AlignedData
    const { along: _, lines, ...rest } = drawn
    const shape = JSON.stringify([
      rest,
      lines.map(({ values: __, nonFinite, ...line }) => [line, nonFinite && [...nonFinite]]),
    ])
    if (!this.#plot || shape !== this.#shape) {
      this.#shape = shape
      this.#plot?.destroy()
      const size = { width: this.area.clientWidth, height: this.#height }
      this.#plot = new uPlot(plotOptions(drawn, size, this.#pointer), data, this.area)
    } else this.#plot.setData(data, false)
    const [min, max] = this.#board.range
    this.#plot.setScale("x", { min, max })
  }

  /** Announces the current place and its values to screen readers. */
  #say(): void {
    if (!this.#drawn) return
    const { along, kind, read } = this.#drawn
    const at = this.#board.at ?? along.at(-1)
    if (at === undefined) return
    const nearest = nearestPlace(along, at)
    const values = read(this.#board.at === undefined ? undefined : nearest)
    const valuetext = `${placeInWords(kind, along[nearest]!)}: ${values}`
    const attributes = { valuemin: along[0], valuemax: along.at(-1), valuenow: along[nearest], valuetext }
    for (const [name, value] of Object.entries(attributes)) this.area.setAttribute(`aria-${name}`, String(value))
  }
}

const frames = new Frames()
