interface Waiting {
  readonly size: number
  readonly go: () => void
  readonly stop: (reason: unknown) => void
}

/** Room for work of different sizes: work that does not fit waits, in the order in which it came. Work larger than all of the room runs alone. */
export class Slots {
  readonly #room: number
  #used = 0
  #closed: { readonly reason: unknown } | undefined
  readonly #waiting = new Set<Waiting>()

  constructor(room: number) {
    this.#room = room
  }

  /** Waits for room. The function that is returned gives it back, and is to be called once. */
  async take(size: number): Promise<() => void> {
    if (this.#closed) throw this.#closed.reason
    if (this.#waiting.size === 0 && this.#fits(size)) this.#used += size
    else await new Promise<void>((go, stop) => this.#waiting.add({ size, go, stop }))
    return () => {
      this.#used -= size
      this.#admit()
    }
  }

  async run<T>(size: number, work: () => Promise<T>): Promise<T> {
    const giveBack = await this.take(size)
    try {
      return await work()
    } finally {
      giveBack()
    }
  }

  /** Rejects what waits and what comes later; work that runs is left to end. */
  close(reason: unknown): void {
    this.#closed = { reason }
    for (const { stop } of this.#waiting) stop(reason)
    this.#waiting.clear()
  }

  #fits(size: number): boolean {
    return this.#used === 0 || this.#used + size <= this.#room
  }

  #admit(): void {
    for (const first of this.#waiting) {
      if (!this.#fits(first.size)) return
      this.#used += first.size
      this.#waiting.delete(first)
      first.go()
    }
  }
}
