import { openRegular } from "./regular-file.ts"

const lineFeed = 10

/** Incremental splitter of bytes into lines. Keeps at most `longest` bytes of a line. */
export class LineCutter {
  readonly #longest: number
  #pending: Buffer[] = []
  #length = 0

  constructor(longest: number) {
    this.#longest = longest
  }

  /** Number of bytes of the unfinished line. */
  get unfinished(): number {
    return this.#length
  }

  /** Lines that end in `chunk`, without line feeds; undefined for a line longer than `longest`. */
  *push(chunk: Buffer): Generator<Buffer | undefined> {
    let from = 0
    for (let to = chunk.indexOf(lineFeed); to >= 0; to = chunk.indexOf(lineFeed, from)) {
      this.#hold(chunk.subarray(from, to))
      const isLong = this.#length > this.#longest
      const line = this.#pending.length === 1 ? this.#pending[0]! : Buffer.concat(this.#pending)
      this.#pending = []
      this.#length = 0
      from = to + 1
      yield isLong ? undefined : line
    }
    this.#hold(chunk.subarray(from))
  }

  #hold(bytes: Buffer): void {
    this.#length += bytes.length
    if (this.#length > this.#longest) this.#pending = []
    else if (bytes.length > 0) this.#pending.push(bytes)
  }
}

/**
 * Complete lines of a file in a folder that gigpo manages; undefined for a line of more than `longest` bytes. Throws as
 * `openRegular`.
 */
export async function* finishedLines(path: string, longest: number): AsyncGenerator<string | undefined> {
  const cutter = new LineCutter(longest)
  const handle = await openRegular(path)
  for await (const chunk of handle.createReadStream({ highWaterMark: 2 ** 18 }))
    for (const line of cutter.push(chunk as Buffer)) yield line?.toString("utf8")
}
