/** A call among those of its episode. */
export interface Turn {
  /** Calls that came one after the other stand so; those of branches that ran side by side may have the same. */
  readonly now: number
  /** It, and all whose replies it goes on from. */
  readonly lineage: ReadonlySet<Turn>
  /** Calls that were in flight when it was. */
  readonly beside: Set<Turn>
}

/**
 * The order of an episode's calls, which must not depend on who is quicker. A call comes after all that had been answered when it came,
 * but for those of another branch: where two calls were in flight at once, whatever goes on from the one and whatever goes on from the
 * other is side by side, too, in whichever order it happens to come. (A branch that calls anew, going on from nothing, cannot be told from
 * one that begins: such a call comes after all that had been answered.)
 */
export class CallOrder {
  readonly #open = new Set<Turn>()
  readonly #answered = new Map<string, Turn>()

  /** @param replies the ids of those that it goes on from */
  come(replies: readonly string[]): Turn {
    const lineage = new Set<Turn>()
    for (const id of replies) for (const turn of this.#answered.get(id)?.lineage ?? []) lineage.add(turn)
    const turn = { now: 0, lineage, beside: new Set<Turn>() }
    lineage.add(turn)
    this.enter(turn)
    // The latest first: mostly no other needs to be looked at.
    for (const earlier of [...this.#answered.values()].reverse())
      if (earlier.now >= turn.now && !sideBySide(turn, earlier)) turn.now = earlier.now + 1
    return turn
  }

  /** In flight, for the first time or again. */
  enter(turn: Turn): void {
    this.#open.delete(turn)
    for (const other of this.#open) {
      turn.beside.add(other)
      other.beside.add(turn)
    }
    this.#open.add(turn)
  }

  answer(turn: Turn, reply: string): void {
    this.#answered.set(reply, turn)
  }

  leave(turn: Turn): void {
    this.#open.delete(turn)
  }
}

/** Whether what either goes on from, and the other does not, was in flight at once. */
function sideBySide(turn: Turn, earlier: Turn): boolean {
  const own = [...turn.lineage].filter((one) => !earlier.lineage.has(one))
  return own.some(({ beside }) => [...beside].some((one) => earlier.lineage.has(one) && !turn.lineage.has(one)))
}
