const thing = "[\\w\\s]+?\\d+"

/** Facts of an ALFWorld episode, read from its observations as in the authors' code of ReBel (arXiv 2605.20061). */
export class HouseholdFacts {
  readonly #seen: Set<string> = new Set()
  readonly visited: Set<string> = new Set()
  /** Places of objects, e.g. `on desk 1`. */
  readonly places: Map<string, string> = new Map()
  /** States of objects and receptacles: open, closed, hot, cold, clean or dirty. */
  readonly states: Map<string, string> = new Map()
  inventory: string = ""

  /** Receptacles that were seen and not visited. */
  get unvisited(): Set<string> {
    return new Set([...this.#seen].filter((one) => !this.visited.has(one)))
  }

  /** Reads an observation. */
  read(observation: string): void {
    const text = observation.toLowerCase()
    const first = (pattern: string) => new RegExp(pattern).exec(text) ?? undefined
    for (const one of itemsOf(first("looking quickly around you, you see (.*?)\\.")?.[1])) this.#seen.add(one)
    const facing = first("you are facing (.*?)\\.")?.[1]
    if (facing !== undefined) this.#seen.add(facing.trim())
    const taken = first(`you (?:pick up|take)(?: the)? (${thing})`)?.[1]
    if (taken !== undefined) this.inventory = taken.trim()
    const [, put, on] = first(`you (?:put|move)(?: the)? (${thing}) (?:in|on|to|in/on)(?: the)? (${thing})`) ?? []
    if (put !== undefined) {
      this.places.set(put.trim(), `in/on ${on!.trim()}`)
      this.inventory = ""
    }
    for (const [, relation, place, items] of text.matchAll(
      new RegExp(`(on|in) the (${thing}), you see (.*?)\\.`, "g"),
    )) {
      this.#seen.add(place!.trim())
      this.visited.add(place!.trim())
      for (const item of itemsOf(items)) this.places.set(item, `${relation} ${place!.trim()}`)
    }
    for (const [, one, state] of text.matchAll(
      new RegExp(`the (${thing}) is (open|closed|clean|dirty|hot|cold)`, "g"),
    )) {
      this.states.set(one!.trim(), state!)
      if (state === "open") for (const places of [this.visited, this.#seen]) places.add(one!.trim())
    }
    for (const [verb, state] of [
      ["heat", "hot"],
      ["clean", "clean"],
      ["cool", "cold"],
    ] as const) {
      const changed = first(`you ${verb}(?: the)? (${thing})`)?.[1]
      if (changed !== undefined) this.states.set(changed.trim(), state)
    }
  }
}

function itemsOf(text: string | undefined): string[] {
  return Array.from((text ?? "").matchAll(new RegExp(`(?:an?) (${thing})`, "g")), ([, item]) => item!.trim())
}
