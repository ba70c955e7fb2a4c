/** The last bytes of what somebody writes, however much that is. */
export class Tail {
  readonly #most: number
  #bytes: Buffer = Buffer.alloc(0)
  #cut = false
  /** How many bytes were written in all. */
  bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  push(chunk: Buffer): void {
    this.bytes += chunk.length
    const all = Buffer.concat([this.#bytes, chunk])
    this.#cut ||= all.length > this.#most
    this.#bytes = all.subarray(-this.#most)
  }

  /** The last lines that are not blank, the oldest first. The first line of what was kept may have lost its beginning. */
  lines(most: number): readonly string[] {
    return split(this.#bytes.toString("utf8")).slice(-most)
  }

  /** The last line that is not blank; "" where there is none, undefined where it is longer than what was kept. */
  get lastLine(): string | undefined {
    const text = this.#bytes.toString("utf8")
    const whole = this.#cut ? text.replace(/^[^\n]*\n?/, "") : text
    return split(whole).at(-1) ?? (this.#cut ? undefined : "")
  }
}

function split(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "")
}
