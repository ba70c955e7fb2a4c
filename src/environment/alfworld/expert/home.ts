/** A household at one moment, by display names: as it is, or as somebody believes that it is. */
export interface Home {
  readonly receptacles: ReadonlyMap<string, Receptacle>
  readonly things: ReadonlyMap<string, Thing>
  /** The place where the player stands. */
  readonly here: string
  /** The thing in the player's hand. */
  readonly held: string | undefined
  /** Whether a thing can be put into (or onto) a receptacle. */
  fits(thing: string, receptacle: string): boolean
}

export interface Receptacle {
  readonly kind: string
  /** Where one stands to use it; some share a place. */
  readonly place: string
  readonly closed: boolean
}

export interface Thing {
  readonly kind: string
  /** Where it lies and can be taken. ALFWorld's own households have things in two receptacles at once, even while held. */
  readonly receptacles: readonly string[]
  /** Whether what the goal asks to do with it is done. */
  readonly treated: boolean
  /** Whether it was switched on. */
  readonly lit: boolean
}

/** Names that begin with a kind and go on with a number, ascending: `drawer 2` before `drawer 10`. */
export function inOrder(names: Iterable<string>): string[] {
  return [...names].sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1))
}

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf(" ") + 1))
}

export function kindOfName(name: string): string {
  return name.slice(0, name.lastIndexOf(" "))
}
