/**
 * Queue that shares concurrency between clients: a limited number of tasks runs at once, and fewer per client. Clients
 * take turns; tasks of one client start in order of arrival.
 */
export class FairQueue {
  readonly #most: number
  readonly #ofClient: number
  /** Waiting tasks by client; the next client comes first. */
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Running tasks by client. */
  readonly #running = new Map<string, number>()
  #total = 0

  /** @param most - maximum concurrent tasks; @param ofClient - maximum concurrent tasks of one client */
  constructor(most: number, ofClient = 1) {
    this.#most = most
    this.#ofClient = ofClient
  }

  /** Runs a task of a client in its turn. */
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
