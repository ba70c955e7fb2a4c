import type { Observation, PastStep } from "../../environment.ts"
import { objectKinds, openable } from "../generate/things.ts"
import type { Goal } from "./goal.ts"
import { type Home, kindOfName, type Receptacle, type Thing } from "./home.ts"

/** Knowledge of a household from all past observations. */
export interface Memory extends Home {
  /** Receptacles whose contents were seen. */
  readonly seen: ReadonlySet<string>
}

const openableKinds = new Set([...openable].map((kind) => kind.toLowerCase()))

/** Receptacles in which objects of a kind are searched for, the most likely kind first; names in lower case. */
export const places: ReadonlyMap<string, readonly string[]> = new Map(
  [...objectKinds.values()].map(({ name, where }) => [name.toLowerCase(), where.map((kind) => kind.toLowerCase())]),
)

/** Knowledge from the observations of an episode, with the texts of ALFWorld 0.2 and 0.4. */
export function remember(now: Observation, history: readonly PastStep[], goal: Goal): Memory {
  const reader = new Reader(goal)
  for (const { observation, action } of history) {
    reader.read(observation)
    reader.act(action)
  }
  reader.read(now)
  return reader.memory()
}

/** Name of the agent's location; other locations have the name of their receptacle. */
const here = "here"

class Reader {
  readonly #goal: Goal
  #receptacles = new Map<string, Receptacle>()
  /** Known contents by receptacle. For unseen receptacles these are only the objects that were put there. */
  readonly #contents = new Map<string, readonly string[]>()
  readonly #seen = new Set<string>()
  readonly #treated = new Set<string>()
  readonly #lit = new Set<string>()
  /** Kinds of objects with kinds of receptacles that do not accept them, for example "mug safe". */
  readonly #refusals = new Set<string>()
  #held: { readonly name: string; readonly origin: string } | undefined
  #arrived: string | undefined
  #action = ""

  constructor(goal: Goal) {
    this.#goal = goal
  }

  /** Stores the action, because observations of arrivals do not name the location in ALFWorld 0.2. */
  act(action: string): void {
    this.#action = action
  }

  read({ text, actions }: Observation): void {
    const room = /Looking quickly around you, you see (.*)\./.exec(text)?.[1]
    if (room !== undefined && this.#receptacles.size === 0) this.#enter(listed(room))
    if (text.startsWith("You arrive at ")) this.#arrived = /^go to (.+)$/.exec(this.#action)?.[1]
    this.#readReceptacle(text)
    this.#readThing(text)
    const offered = actions && new Set(actions)
    for (const name of this.#receptacles.keys()) {
      // Going to the current location is not admissible, so a receptacle without the command "go to" is here.
      const near = offered ? !offered.has(`go to ${name}`) : name === this.#arrived
      this.#update(name, { place: near ? here : name })
      if (near && offered) this.#readActions(name, offered)
    }
  }

  #enter(names: readonly string[]): void {
    for (const name of names) {
      const kind = kindOfName(name)
      this.#receptacles.set(name, { kind, place: name, closed: openableKinds.has(kind) })
    }
  }

  #update(name: string, change: Partial<Receptacle>): void {
    const known = this.#receptacles.get(name)
    if (known) this.#receptacles.set(name, { ...known, ...change })
  }

  #readReceptacle(text: string): void {
    const inside = /(?:On the (.+?)|The (.+?) is open\. In it), you see (.*)\.$/.exec(text)
    const name = inside?.[1] ?? inside?.[2]
    if (name !== undefined) {
      this.#contents.set(name, listed(inside![3]!))
      this.#seen.add(name)
      this.#update(name, { closed: false })
    }
    const closed = /The (.+?) is closed\./.exec(text) ?? /^You close the (.+)\.$/.exec(text)
    if (closed) this.#update(closed[1]!, { closed: true })
  }

  #readThing(text: string): void {
    const [, taken, origin] = /^You pick up the (.+) from the (.+)\.$/.exec(text) ?? []
    if (taken !== undefined && origin !== undefined) {
      this.#contents.set(origin, this.#contents.get(origin)?.filter((name) => name !== taken) ?? [])
      this.#held = { name: taken, origin }
    }
    const [, put, target] = /^You (?:move|put) the (.+) (?:to|in\/on) the (.+)\.$/.exec(text) ?? []
    if (put !== undefined && target !== undefined) {
      this.#contents.set(target, [...(this.#contents.get(target) ?? []), put])
      this.#held = undefined
    }
    const [, verb, treated] = /^You (clean|heat|cool) the (.+) using the /.exec(text) ?? []
    const wanted = this.#goal.treatment?.verb
    if (treated !== undefined && verb === wanted) this.#treated.add(treated)
    // Heating an object undoes cooling, and cooling undoes heating.
    else if (treated !== undefined && verb !== "clean" && wanted !== "clean") this.#treated.delete(treated)
    const lit = /^You turn on the (.+)\.$/.exec(text)
    if (lit) this.#lit.add(lit[1]!)
  }

  /** Reads from the admissible commands whether a receptacle at the current location is closed and accepts the held object. */
  #readActions(name: string, actions: ReadonlySet<string>): void {
    const closed = actions.has(`open ${name}`)
    this.#update(name, { closed })
    const held = this.#held?.name
    if (held === undefined || closed) return
    const takes = actions.has(`move ${held} to ${name}`) || actions.has(`put ${held} in/on ${name}`)
    if (takes) this.#refusals.delete(this.#pair(held, name))
    else this.#refusals.add(this.#pair(held, name))
  }

  #pair(thing: string, receptacle: string): string {
    return `${kindOfName(thing)} ${kindOfName(receptacle)}`
  }

  memory(): Memory {
    const where = new Map<string, string[]>()
    for (const [receptacle, names] of this.#contents) {
      for (const name of names) where.set(name, [...(where.get(name) ?? []), receptacle])
    }
    if (this.#held) where.set(this.#held.name, where.get(this.#held.name) ?? [])
    const things = new Map<string, Thing>()
    for (const [name, receptacles] of where) {
      const [treated, lit] = [this.#treated.has(name), this.#lit.has(name)]
      things.set(name, { kind: kindOfName(name), receptacles, treated, lit })
    }
    return {
      receptacles: this.#receptacles,
      things,
      here,
      held: this.#held?.name,
      seen: this.#seen,
      fits: (thing, receptacle) => {
        if (this.#refusals.has(this.#pair(thing, receptacle))) return false
        const [one, other] = [kindOfName(thing), kindOfName(receptacle)]
        const isGoal = one === this.#goal.object && other === this.#goal.target
        const origin = thing === this.#held?.name && receptacle === this.#held.origin
        return isGoal || origin || places.get(one)?.includes(other) === true
      },
    }
  }
}

/** Names in a list such as `a mug 1, a pen 2, and a book 1`; empty for `nothing`. */
function listed(text: string): string[] {
  return Array.from(text.matchAll(/(?:^|, |and )an? (\S+ \d+)/g), (match) => match[1]!)
}
