import { stretch } from "./in-turns.ts"

/** Queue of work that is spread over animation frames, so that no frame is long. */
export class Frames {
  readonly #pieces = new Map<object, () => void>()

  /** @param of - key of the piece. A piece with the same key that has not run yet is replaced. */
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
        reportError(error) // the other pieces still run
      }
      // Includes microtasks of the piece in the measured time: uPlot draws in one.
      await undefined
      if (this.#pieces.get(of) === piece) this.#pieces.delete(of)
    }
    if (this.#pieces.size > 0) requestAnimationFrame(() => this.#next())
  }
}
