interface Waiting {
  readonly size: number
  readonly go: () => void
  readonly stop: (reason: unknown) => void
}

/** Limit on the total size of concurrent work. Work that does not fit waits in order of arrival. Work above the limit runs alone. */
export class Slots {
  readonly #room: number
  #used = 0
  #closed: { readonly reason: unknown } | undefined
  readonly #waiting = new Set<Waiting>()

  constructor(room: number) {
    this.#room = room
  }

  /** Waits until work fits. The returned function releases its size; call it once. */
  async take(size: number): Promise<() => void> {
    if (this.#closed) throw this.#closed.reason
    if (this.#waiting.size === 0 && this.#fits(size)) this.#used += size
    else await new Promise<void>((go, stop) => this.#waiting.add({ size, go, stop }))
    return () => {
      this.#used -= size
      this.#admit()
    }
  }

  /** Runs work when it fits. */
  async run<T>(size: number, work: () => Promise<T>): Promise<T> {
    const giveBack = await this.take(size)
    try {
      return await work()
    } finally {
      giveBack()
    }
  }

  /** Rejects waiting and later work; running work continues. */
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
