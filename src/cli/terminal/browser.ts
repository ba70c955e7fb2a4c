import { visible } from "../../util/visible.ts"
import { wrapped } from "./cells.ts"
import type { Line } from "./screen.ts"

export interface Size {
  readonly width: number
  readonly rows: number
}

export interface Browsed {
  /** Column headings of the lines. */
  readonly head: string
  /** One line per item. */
  readonly lines: readonly string[]
  /** Full text of an item. */
  readonly open: (index: number) => Promise<string>
}

/** State of a list browser: lines to show, and reactions to keys. */
export class Browser {
  readonly #browsed: Browsed
  #chosen = 0
  #text: string | undefined
  /** First visible line of the text. */
  #top = 0

  constructor(browsed: Browsed) {
    this.#browsed = browsed
  }

  /** Handles a key. Returns false if the browser should close. */
  async press(key: string, size: Size): Promise<boolean> {
    if (key === "q" || key === "escape" || key === "ctrl+c") return false
    const step = steps.get(key)?.(size.rows - chrome)
    if (this.#text !== undefined) {
      if (key === "left" || key === "backspace") this.#text = undefined
      else if (step !== undefined) this.#scroll(step, size)
    } else if (step !== undefined) this.#chosen = within(this.#chosen + step, this.#browsed.lines.length)
    else if (key === "return" || key === "right") {
      this.#text = visible(await this.#browsed.open(this.#chosen))
      this.#top = 0
    }
    return true
  }

  /** Lines to show, at most as many as the screen has rows. */
  lines(size: Size): Line[] {
    return this.#text === undefined ? this.#list(size) : this.#page(this.#text, size)
  }

  #list({ width, rows }: Size): Line[] {
    const { head, lines } = this.#browsed
    const room = Math.max(rows - chrome, 1)
    const top = Math.max(Math.min(this.#chosen - Math.floor(room / 2), lines.length - room), 0)
    const shown = lines.slice(top, top + room).map((whole, at): Line => {
      const line = wrapped(whole, width - 2)[0]!
      return top + at === this.#chosen ? { text: `> ${line}`, style: "cyan" } : `  ${line}`
    })
    const place = `${this.#chosen + 1} of ${lines.length}`
    return [`  ${head}`, ...shown, { text: `${place}   ↑ ↓ select   enter open   q quit`, style: "dim" }]
  }

  #page(text: string, size: Size): Line[] {
    const all = wrapped(text, size.width)
    const shown = all.slice(this.#top, this.#top + size.rows - chrome)
    const place = `line ${this.#top + 1} of ${all.length}`
    return [...shown, { text: `${place}   ↑ ↓ scroll   ← back   q quit`, style: "dim" }]
  }

  #scroll(step: number, size: Size): void {
    const last = wrapped(this.#text!, size.width).length - (size.rows - chrome)
    this.#top = within(this.#top + step, Math.max(last, 0) + 1)
  }
}

/** Rows besides those of the list or the text. */
const chrome = 2

/** Steps of the keys, by the rows of a page. */
const steps: ReadonlyMap<string, (page: number) => number> = new Map([
  ["up", () => -1],
  ["k", () => -1],
  ["down", () => 1],
  ["j", () => 1],
  ["pageup", (page: number) => -page],
  ["pagedown", (page: number) => page],
  ["space", (page: number) => page],
  ["home", () => Number.NEGATIVE_INFINITY],
  ["end", () => Number.POSITIVE_INFINITY],
])

function within(index: number, count: number): number {
  return Math.max(Math.min(index, count - 1), 0)
}
