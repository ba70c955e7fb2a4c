import type { ReplyDelta } from "../chat/dialect.ts"

/**
 * A body that is made as it is read, and as fast: the texts that `next` gives, of which the last is `done`. `over` is told once how it went. It is
 * delivered when its reader has the last text and asks for more, or leaves off; it is not when the reader leaves before, the request is
 * aborted, or the making of it fails.
 */
export function delivered(
  next: () => Promise<IteratorResult<string, string>>,
  signal: AbortSignal,
  over: (delivered: boolean) => void,
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder()
  let [complete, ended] = [false, false]
  const end = (how: boolean) => {
    if (ended) return
    ended = true
    signal.removeEventListener("abort", lose)
    over(how)
  }
  const lose = () => end(false)
  if (signal.aborted) lose()
  else signal.addEventListener("abort", lose, { once: true })
  return new ReadableStream<Uint8Array>(
    {
      async pull(to) {
        if (complete) {
          end(true)
          return to.close()
        }
        try {
          const { value, done = false } = await next()
          complete = done
          to.enqueue(bytes.encode(value))
        } catch (error) {
          lose()
          throw error
        }
      },
      cancel: () => end(complete),
    },
    { highWaterMark: 0 },
  )
}

/** Milliseconds from one event to the next: no eye sees the difference, and 64 clients' events a token cost as much as a small model. */
const pace = 40

/**
 * Parts of replies between who samples them and who reads them. Nobody waits for a slow reader: what has not been read yet is put
 * together, so that it never takes more than the replies' texts.
 */
export class OutputBuffer {
  #parts: { readonly index: number; readonly reply: string; piece: ReplyDelta }[] = []
  #taken = Number.NEGATIVE_INFINITY
  #hurry: () => void = () => {}
  #wake: () => void = () => {}
  #ended = false

  add(index: number, piece: ReplyDelta, reply: string): void {
    const last = this.#parts.findLast((part) => part.index === index)
    if (last && last.piece.kind !== "call" && last.piece.kind === piece.kind)
      last.piece = { kind: piece.kind, text: last.piece.text + piece.text }
    else this.#parts.push({ index, reply, piece })
    this.#wake()
  }

  /** Nothing is added any more. */
  end(): void {
    this.#ended = true
    this.#wake()
    this.#hurry()
  }

  /** All that has come since it was last asked, which is not just now; waits for the first. None at the end. */
  async take(): Promise<readonly { readonly index: number; readonly reply: string; readonly piece: ReplyDelta }[]> {
    if (this.#parts.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    await this.#rest()
    const parts = this.#parts
    this.#parts = []
    this.#taken = performance.now()
    return parts
  }
  async #rest(): Promise<void> {
    const rest = this.#taken + pace - performance.now()
    if (this.#ended || rest <= 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, rest)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
