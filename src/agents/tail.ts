/** Last bytes of an output of any length. */
export class Tail {
  readonly #most: number
  #bytes: Buffer = Buffer.alloc(0)
  #cut = false
  /** Total number of bytes written. */
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

  /** Last non-blank lines, oldest first. The first line may be incomplete. */
  lines(most: number): readonly string[] {
    return split(this.#bytes.toString("utf8")).slice(-most)
  }

  /** Last non-blank line; "" if there is none, undefined if it is longer than the kept bytes. */
  get lastLine(): string | undefined {
    const text = this.#bytes.toString("utf8")
    const whole = this.#cut ? text.replace(/^[^\n]*\n?/, "") : text
    return split(whole).at(-1) ?? (this.#cut ? undefined : "")
  }
}

function split(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "")
}
