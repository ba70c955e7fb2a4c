import { styleText } from "node:util"
import { visible } from "../../util/visible.ts"
import { activity, type Work } from "./activity.ts"
import { wrapped } from "./cells.ts"
import { shortened } from "./format.ts"

/** Part of a stream that a screen needs: `process.stdout` or a replacement in tests. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  /** Whether colors are supported and wanted (NO_COLOR). */
  hasColors?(): boolean
  write(text: string): unknown
}

/** Line of text, optionally in one color. */
export type Line = string | { readonly text: string; readonly style: "green" | "red" | "cyan" | "dim" }

const redrawEvery = 80 // milliseconds

/**
 * Permanent lines and, on a terminal, a block below them that is redrawn in place. Elsewhere only the lines are
 * printed, without escape codes; the first line of the block then describes the current work.
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

  /** Characters per line of the block. A wrapped line would take two rows and break the cursor movement. */
  get width(): number {
    return Math.max((this.#output.columns || 80) - 1, 1)
  }

  /** Maximum rows of a block: what has scrolled off the screen cannot be redrawn. */
  get rows(): number {
    return Math.max((this.#output.rows || 24) - 1, 1)
  }

  /** Writes permanent lines above the block. */
  print(text: string): void {
    this.#write(`${visible(text)}\n`, this.#block)
  }

  /** Draws the block, unless it was drawn within the last 80 ms and `force` is false. */
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

  /** Makes the block permanent; further output follows below. */
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

  /** Writes erasure, text and new block in one call to avoid flicker. */
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
    // Wide characters may still exceed the width.
    const shown = wrapped(shortened(visible(text), this.width), this.width)[0]!
    return style && this.#output.hasColors?.() ? styleText(style, shown, { validateStream: false }) : shown
  }
}
