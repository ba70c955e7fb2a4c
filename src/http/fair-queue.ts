/**
 * Work of several clients, a few pieces at the same time and fewer of each client: however much a client asks for, the others wait for no
 * more than these. Clients take turns; the pieces of one are begun in the order in which they came.
 */
export class FairQueue {
  readonly #most: number
  readonly #ofClient: number
  /** Pieces that wait, by client; the client whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Pieces that are being done, by client. */
  readonly #running = new Map<string, number>()
  #total = 0

  /** @param most pieces at the same time; @param ofClient pieces of one client at the same time */
  constructor(most: number, ofClient = 1) {
    this.#most = most
    this.#ofClient = ofClient
  }

  /** Does a piece of a client's work in its turn. */
  async take<T>(client: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => {
      const line = this.#waiting.get(client)
      if (line) line.push(go)
      else this.#waiting.set(client, [go])
      this.#next()
    })
    try {
      return await work()
    } finally {
      this.#count(client, -1)
      this.#next()
    }
  }

  #next(): void {
    for (const [client, line] of this.#waiting) {
      if (this.#total >= this.#most) return
      if ((this.#running.get(client) ?? 0) >= this.#ofClient) continue
      this.#count(client, 1)
      this.#waiting.delete(client)
      line.shift()!()
      if (line.length > 0) this.#waiting.set(client, line) // behind the others
    }
  }

  #count(client: string, change: number): void {
    const running = (this.#running.get(client) ?? 0) + change
    if (running > 0) this.#running.set(client, running)
    else this.#running.delete(client)
    this.#total += change
  }
}
