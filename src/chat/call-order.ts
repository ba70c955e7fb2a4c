/** Place of a call in the order of its episode. */
export interface Turn {
  /** Position in the order: larger for a later call; calls of parallel branches may have the same. */
  now: number
  /** This call, and all calls whose replies it continues. */
  readonly lineage: Set<Turn>
  /** Calls that were in flight at the same time. */
  readonly beside: Set<Turn>
}

/** Place of a request among those of its episode, taken before the request is read. */
export interface Arrival {
  readonly turn: Turn
  /** Replies that had been given. */
  readonly answered: number
  /** Lets the next request be read; undefined while this one does not wait to be read. */
  read: (() => void) | undefined
}

/**
 * Order of an episode's calls, which must not depend on their speed. A call comes after all calls that had been answered when it arrived,
 * except those of another branch: where two calls were in flight at once, all that continues the one and all that continues the other is
 * parallel, too, in whichever order it arrives. A call that continues no reply looks like the first of a branch: it comes after all that
 * had been answered.
 */
export class CallOrder {
  readonly #open = new Set<Turn>()
  readonly #answered = new Map<string, Turn>()
  #reading: Promise<void> = Promise.resolve()

  /** A request arrives, of which only the headers need to be there. */
  arrive(): Arrival {
    const turn: Turn = { now: 0, lineage: new Set(), beside: new Set() }
    turn.lineage.add(turn)
    this.#enter(turn)
    return { turn, answered: this.#answered.size, read: undefined }
  }

  /** Waits until the calls are read whose requests were complete before this one. Long ones take longer, which must not change the order. */
  async toRead(arrival: Arrival): Promise<void> {
    const before = this.#reading
    this.#reading = new Promise((resolve) => {
      arrival.read = resolve
    })
    await before
  }

  /** Sets the position of a call once its request is read. @param replies ids of the replies that the call continues */
  come({ turn, answered, read }: Arrival, replies: readonly string[]): Turn {
    const { lineage } = turn
    for (const id of replies) for (const one of this.#answered.get(id)?.lineage ?? []) lineage.add(one)
    for (const { now } of [...lineage].filter((one) => one !== turn)) turn.now = Math.max(turn.now, now + 1)
    // The latest first: mostly no other needs to be looked at.
    for (const earlier of [...this.#answered.values()].slice(0, answered).reverse())
      if (earlier.now >= turn.now && !sideBySide(turn, earlier)) turn.now = earlier.now + 1
    read?.()
    return turn
  }

  /** The request turns out to be a retry of an earlier one, which is in flight again since this one arrived. */
  return({ turn: phantom, read }: Arrival, turn: Turn): void {
    this.#enter(turn)
    for (const other of phantom.beside) if (other !== turn) meet(turn, other)
    read?.()
  }

  /** In flight, for the first time or again. */
  #enter(turn: Turn): void {
    this.#open.delete(turn)
    for (const other of this.#open) meet(turn, other)
    this.#open.add(turn)
  }

  answer(turn: Turn, reply: string): void {
    this.#answered.set(reply, turn)
  }

  /** @param turn the arrival's own, or that of the request which it is a retry of */
  leave(arrival: Arrival, turn: Turn = arrival.turn): void {
    this.#open.delete(arrival.turn)
    this.#open.delete(turn)
    arrival.read?.()
  }
}

function meet(turn: Turn, other: Turn): void {
  turn.beside.add(other)
  other.beside.add(turn)
}

/** Whether calls that only one of the two continues were in flight at once with those that only the other continues. */
function sideBySide(turn: Turn, earlier: Turn): boolean {
  const own = [...turn.lineage].filter((one) => !earlier.lineage.has(one))
  return own.some(({ beside }) => [...beside].some((one) => earlier.lineage.has(one) && !turn.lineage.has(one)))
}
