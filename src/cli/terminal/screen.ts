import { visible } from "../../visible.ts"
import { shortened } from "./format.ts"

/** What of a stream is needed: `process.stdout`, or a test's. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

const redrawEvery = 80 // milliseconds

/**
 * Lines that stay and, on a terminal, a block below them that is drawn again in its place. Anywhere else there are only the
 * lines, without any escape code.
 */
export class Screen {
  /** Whether blocks are shown. */
  readonly live: boolean
  readonly #output: Output
  #block: readonly string[] = []
  #drawnAt: number = Number.NEGATIVE_INFINITY

  constructor(output: Output, options: { readonly live?: boolean } = {}) {
    this.#output = output
    this.live = options.live ?? (output.isTTY === true && process.env.TERM !== "dumb")
  }

  /** Writes lines that stay, above the block. */
  print(text: string): void {
    this.#write(`${visible(text)}\n`, this.#block)
  }

  /** Shows the block, unless it was drawn only just now (`force` draws it all the same). */
  show(block: readonly string[], force = false): void {
    if (!this.live || (!force && performance.now() - this.#drawnAt < redrawEvery)) return
    this.#write("", block)
    this.#drawnAt = performance.now()
  }

  /** Removes the block. */
  clear(): void {
    this.#write("", [])
  }

  /** Leaves the block standing; what follows comes below it. */
  keep(): void {
    this.#block = []
  }

  /** In one go, so that nothing flickers: away with the old block, the text, the new block. */
  #write(text: string, block: readonly string[]): void {
    const erase = this.#block.length > 0 ? `\x1b[${this.#block.length}A\x1b[J` : "" // up, then clear to the end
    // A line that wraps would take two rows and break the count of rows to go back.
    const width = Math.max((this.#output.columns || 80) - 1, 1)
    const rows = block.map((line) => `${shortened(visible(line), width)}\n`)
    this.#block = block
    if (erase || text || rows.length > 0) this.#output.write(erase + text + rows.join(""))
  }
}
