/** State of a household by display names, either the true state or a belief. */
export interface Home {
  readonly receptacles: ReadonlyMap<string, Receptacle>
  readonly things: ReadonlyMap<string, Thing>
  /** Location of the agent. */
  readonly here: string
  /** Name of the object in the agent's hand. */
  readonly held: string | undefined
  /** Whether a thing can be put into (or onto) a receptacle. */
  fits(thing: string, receptacle: string): boolean
}

export interface Receptacle {
  readonly kind: string
  /** Location from which the receptacle is used; receptacles may share one. */
  readonly place: string
  readonly closed: boolean
}

export interface Thing {
  readonly kind: string
  /** Receptacles from which the object can be taken. In ALFWorld's games an object may be in two at once, even while held. */
  readonly receptacles: readonly string[]
  /** Whether the treatment of the goal is done. */
  readonly treated: boolean
  /** Whether the object was switched on. */
  readonly lit: boolean
}

/** Names of a kind and a number in ascending order: `drawer 2` before `drawer 10`. */
export function inOrder(names: Iterable<string>): string[] {
  return [...names].sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1))
}

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf(" ") + 1))
}

export function kindOfName(name: string): string {
  return name.slice(0, name.lastIndexOf(" "))
}
