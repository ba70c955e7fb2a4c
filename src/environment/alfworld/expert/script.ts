import type { Treatment } from "../generate/task-types.ts"
import type { Goal } from "./goal.ts"
import { type Home, inOrder } from "./home.ts"

/**
 * Shortest list of commands that reaches the goal. Every choice of objects, receptacle and appliance gives one script of taking, treating
 * and placing; the first of the shortest is used. Commands that put an object down have the wording of ALFWorld 0.4. `undefined` if the
 * household lacks something that the goal needs; empty if the goal is reached.
 */
export function shortestScript(home: Home, goal: Goal): readonly string[] | undefined {
  const objects = objectsOf(home, goal.object)
  return shortest(goal.taskType === "look_at_obj_in_light" ? look(home, goal, objects) : bring(home, goal, objects))
}

/** Shortest list of commands that takes an object of a kind; `undefined` if none can be taken. */
export function shortestFetch(home: Home, kind: string): readonly string[] | undefined {
  return shortest(objectsOf(home, kind).map((object) => new Script(home).take(object)))
}

function shortest(scripts: readonly Script[]): readonly string[] | undefined {
  return scripts
    .filter(({ possible }) => possible)
    .reduce<readonly string[] | undefined>(
      (best, { commands }) => (best && best.length <= commands.length ? best : commands),
      undefined,
    )
}

/** Objects of a kind that are held or can be taken from a receptacle. */
function objectsOf({ held, things }: Home, kind: string): string[] {
  const isReachable = (name: string) => name === held || things.get(name)!.receptacles.length > 0
  return inOrder(things.keys()).filter((name) => things.get(name)!.kind === kind && isReachable(name))
}

function look(home: Home, goal: Goal, objects: readonly string[]): Script[] {
  return objectsOf(home, goal.target).flatMap((lamp) =>
    objects.map((object) => new Script(home).take(object).useAt(lamp)),
  )
}

function bring(home: Home, goal: Goal, objects: readonly string[]): Script[] {
  const treatment = goal.treatment
  const appliances = treatment ? receptaclesOf(home, treatment.appliance) : [undefined]
  return receptaclesOf(home, goal.target).flatMap((target) => {
    const isThere = (name: string) => {
      const { receptacles, treated } = home.things.get(name)!
      return receptacles.includes(target) && (treated || !treatment)
    }
    const missing = goal.count - objects.filter(isThere).length
    const others = objects.filter((name) => !isThere(name) && home.fits(name, target))
    return sequences(others, missing).flatMap((chosen) =>
      appliances.map((appliance) => {
        const script = new Script(home)
        for (const name of chosen) {
          script.take(name, target)
          if (treatment && !home.things.get(name)!.treated) script.treat(name, treatment, appliance!)
          if (!script.isStillIn(name, target)) script.put(name, target)
        }
        return script
      }),
    )
  })
}

function receptaclesOf(home: Home, kind: string): string[] {
  return inOrder(home.receptacles.keys()).filter((name) => home.receptacles.get(name)!.kind === kind)
}

/** All ordered selections of `count` items. */
function sequences(items: readonly string[], count: number): string[][] {
  if (count <= 0) return [[]]
  return items.flatMap((item) =>
    sequences(
      items.filter((other) => other !== item),
      count - 1,
    ).map((rest) => [item, ...rest]),
  )
}

/** Script under construction: commands, and the state of the household after them. */
class Script {
  readonly commands: string[] = []
  /** False if the held object must be put down first and no receptacle accepts it. */
  possible = true
  readonly #home: Home
  readonly #opened = new Set<string>()
  readonly #moved = new Map<string, string>()
  readonly #taken = new Set<string>()
  #here: string
  #held: string | undefined

  constructor(home: Home) {
    this.#home = home
    this.#here = home.here
    this.#held = home.held
  }

  /** Takes an object from the receptacle with the fewest commands. The target `wanted` is avoided if the object is in other receptacles too. */
  take(name: string, wanted?: string): this {
    if (this.#held === name) return this
    if (this.#held !== undefined) this.#putAway(this.#held)
    const { receptacles } = this.#home.things.get(name)!
    const others = receptacles.filter((receptacle) => receptacle !== wanted)
    const receptacle = this.#moved.get(name) ?? this.#easiest(others.length > 0 ? others : receptacles)!
    this.#reachInto(receptacle)
    this.commands.push(`take ${name} from ${receptacle}`)
    this.#held = name
    this.#taken.add(`${name} from ${receptacle}`)
    return this
  }

  /** Whether an object is in a receptacle from which it was not taken. In ALFWorld an object may be in two receptacles. */
  isStillIn(name: string, receptacle: string): boolean {
    return (
      this.#home.things.get(name)!.receptacles.includes(receptacle) && !this.#taken.has(`${name} from ${receptacle}`)
    )
  }

  treat(name: string, { verb }: Treatment, appliance: string): this {
    this.#goTo(appliance)
    this.commands.push(`${verb} ${name} with ${appliance}`)
    return this
  }

  put(name: string, receptacle: string): this {
    this.#reachInto(receptacle)
    this.commands.push(`move ${name} to ${receptacle}`)
    this.#held = undefined
    this.#moved.set(name, receptacle)
    return this
  }

  /** Goes to a lamp and switches it on if it is off. */
  useAt(lamp: string): this {
    const { receptacles, lit } = this.#home.things.get(lamp)!
    this.#goTo(receptacles.find((receptacle) => this.#isNear(receptacle)) ?? receptacles[0]!)
    if (!lit) this.commands.push(`use ${lamp}`)
    return this
  }

  /** Puts the held object down, to free the hand. */
  #putAway(name: string): void {
    const receptacle = this.#easiest(
      inOrder(this.#home.receptacles.keys()).filter((receptacle) => this.#home.fits(name, receptacle)),
    )
    if (receptacle) this.put(name, receptacle)
    else this.possible = false
  }

  /** First of the receptacles that need the fewest commands. */
  #easiest(receptacles: readonly string[]): string | undefined {
    const cost = (receptacle: string) => (this.#isNear(receptacle) ? 0 : 1) + (this.#isClosed(receptacle) ? 1 : 0)
    return [...receptacles].sort((a, b) => cost(a) - cost(b))[0]
  }

  #goTo(receptacle: string): void {
    if (this.#isNear(receptacle)) return
    this.commands.push(`go to ${receptacle}`)
    this.#here = this.#home.receptacles.get(receptacle)!.place
  }

  #reachInto(receptacle: string): void {
    this.#goTo(receptacle)
    if (!this.#isClosed(receptacle)) return
    this.commands.push(`open ${receptacle}`)
    this.#opened.add(receptacle)
  }

  #isNear(receptacle: string): boolean {
    return this.#home.receptacles.get(receptacle)!.place === this.#here
  }

  #isClosed(receptacle: string): boolean {
    return this.#home.receptacles.get(receptacle)!.closed && !this.#opened.has(receptacle)
  }
}
