import { stretch } from "./in-turns.ts"

/** Work in pieces: as many a frame as fit into it, so that none is long. A piece that is added again before its turn replaces the first. */
export class Frames {
  readonly #pieces = new Map<object, () => void>()

  /** @param of - whose piece it is: each has one */
  add(of: object, piece: () => void): void {
    this.#pieces.set(of, piece)
    if (this.#pieces.size === 1) requestAnimationFrame(() => this.#next())
  }

  remove(of: object): void {
    this.#pieces.delete(of)
  }

  async #next(): Promise<void> {
    const started = performance.now()
    for (const [of, piece] of this.#pieces) {
      if (performance.now() - started > stretch) break
      try {
        piece()
      } catch (error) {
        reportError(error) // the others are drawn all the same
      }
      // What the piece has put off to the end of its turn is of it, too: uPlot draws then.
      await undefined
      if (this.#pieces.get(of) === piece) this.#pieces.delete(of)
    }
    if (this.#pieces.size > 0) requestAnimationFrame(() => this.#next())
  }
}
