/** Incremental splitter of text at marks. Text that may start a mark is held back. */
export class MarkedText {
  #held = ""

  /** Text before the first of the marks, and that mark; undefined if none has been found yet. */
  take(text: string, marks: readonly string[]): { readonly before: string; readonly mark: string | undefined } {
    this.#held += text
    let found: { readonly at: number; readonly mark: string } | undefined
    for (const mark of marks) {
      const at = this.#held.indexOf(mark)
      if (at >= 0 && (found === undefined || at < found.at)) found = { at, mark }
    }
    const end = found ? found.at : this.#held.length - longestStart(this.#held, marks)
    const before = this.#held.slice(0, end)
    this.#held = this.#held.slice(end + (found?.mark.length ?? 0))
    return { before, mark: found?.mark }
  }

  /** Returns the text held back. */
  rest(): string {
    const rest = this.#held
    this.#held = ""
    return rest
  }
}

/** Number of trailing characters that could start a mark. */
function longestStart(text: string, marks: readonly string[]): number {
  const most = Math.min(text.length, Math.max(0, ...marks.map(({ length }) => length - 1)))
  for (let length = most; length > 0; length--) {
    const end = text.slice(text.length - length)
    if (marks.some((mark) => mark.startsWith(end))) return length
  }
  return 0
}
