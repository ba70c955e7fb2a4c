import { styleText } from "node:util"
import { visible } from "../../util/visible.ts"
import { activity, type Work } from "./activity.ts"
import { wrapped } from "./cells.ts"
import { shortened } from "./format.ts"

/** What of a stream is needed: `process.stdout`, or a test's. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  /** Whether colours are shown, and wanted (NO_COLOR). */
  hasColors?(): boolean
  write(text: string): unknown
}

/** A line, as a whole in a colour where there are any. */
export type Line = string | { readonly text: string; readonly style: "green" | "red" | "cyan" | "dim" }

const redrawEvery = 80 // milliseconds

/**
 * Lines that stay and, on a terminal, a block below them that is drawn again in its place. Anywhere else there are only the
 * lines, without any escape code; the first line of the block is then what a wait is described by.
 */
export class Screen {
  /** Whether blocks are shown. */
  readonly live: boolean
  readonly #output: Output
  #block: readonly Line[] = []
  #drawnAt: number = Number.NEGATIVE_INFINITY
  #work: Work | undefined

  constructor(output: Output, options: { readonly live?: boolean } = {}) {
    this.#output = output
    this.live = options.live ?? (output.isTTY === true && process.env.TERM !== "dumb")
  }

  /** Characters of a line of the block: one that wraps would take two rows and break the count of rows to go back. */
  get width(): number {
    return Math.max((this.#output.columns || 80) - 1, 1)
  }

  /** Rows that a block may have: what has left the screen cannot be drawn again. */
  get rows(): number {
    return Math.max((this.#output.rows || 24) - 1, 1)
  }

  /** Writes lines that stay, above the block. */
  print(text: string): void {
    this.#write(`${visible(text)}\n`, this.#block)
  }

  /** Shows the block, unless it was drawn only just now (`force` draws it all the same). */
  show(block: readonly Line[], force = false): void {
    if (!this.live) this.#describe(block[0])
    if (!this.live || (!force && performance.now() - this.#drawnAt < redrawEvery)) return
    this.#write("", block)
    this.#drawnAt = performance.now()
  }

  /** Removes the block. */
  clear(): void {
    this.#describe(undefined)
    this.#write("", [])
  }

  /** Leaves the block standing; what follows comes below it. */
  keep(): void {
    this.#describe(undefined)
    this.#block = []
    if (this.live) activity.printed(false)
  }

  #describe(line: Line | undefined): void {
    const text = typeof line === "object" ? line.text : line
    if (text === undefined) {
      activity.end(this.#work)
      this.#work = undefined
    } else if (this.#work) this.#work.what = text
    else this.#work = activity.begin(text)
  }

  /** In one go, so that nothing flickers: away with the old block, the text, the new block. */
  #write(text: string, block: readonly Line[]): void {
    const erase = this.#block.length > 0 ? `\x1b[${this.#block.length}A\x1b[J` : "" // up, then clear to the end
    const fitting = block.slice(0, this.rows)
    const rows = fitting.map((line) => `${this.#drawn(line)}\n`)
    this.#block = fitting
    if (!erase && !text && rows.length === 0) return
    this.#output.write(erase + text + rows.join(""))
    activity.printed(this.live ? rows.length > 0 : undefined)
  }

  #drawn(line: Line): string {
    const { text, style } = typeof line === "string" ? { text: line } : line
    // Wide characters may not fit all the same.
    const shown = wrapped(shortened(visible(text), this.width), this.width)[0]!
    return style && this.#output.hasColors?.() ? styleText(style, shown, { validateStream: false }) : shown
  }
}
