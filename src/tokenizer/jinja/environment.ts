import { reserve } from "./limits.ts"
import type { Load, Place, Symbols } from "./symbols.ts"
import { given, Undefined, type Value } from "./values.ts"

/** Variables of an entered scope. */
export class Environment {
  readonly slots: (Value | undefined)[]
  readonly parent: Environment | undefined
  /** Variables of the template and global names. */
  readonly context: ReadonlyMap<string, Value>

  constructor(context: ReadonlyMap<string, Value>, parent: Environment | undefined, size: number) {
    this.context = context
    this.parent = parent
    this.slots = new Array(size)
  }
}

/** Environment that contains a variable. */
function holder(env: Environment, hops: number): Environment {
  let found = env
  for (let left = hops; left > 0; left--) found = found.parent as Environment
  return found
}

export function read(env: Environment, place: Place): Value | undefined {
  return holder(env, place.hops).slots[place.slot]
}

export function write(env: Environment, place: Place, value: Value): void {
  holder(env, place.hops).slots[place.slot] = value
}

/** Function that enters a scope inside an environment. */
export type Enter = (parent: Environment) => Environment

export function enterScope(symbols: Symbols): Enter {
  const { loads } = symbols
  return (parent) => {
    const env = new Environment(parent.context, parent, symbols.size)
    for (const [slot, load] of loads) env.slots[slot] = initial(env, load)
    return env
  }
}

function initial(env: Environment, load: Load): Value | undefined {
  if (load.kind === "context") return env.context.get(load.name)
  return load.kind === "outer" ? read(env, load.place) : undefined
}

export function readName(name: string, place: Place): (env: Environment) => Value {
  return (env) => given(read(env, place), () => new Undefined(`'${name}' is undefined`))
}

/** Output buffer. */
export class Output {
  readonly #parts: string[] = []
  #length = 0

  push(text: string): void {
    this.#length += text.length
    reserve(this.#length > text.length * 2 ? 0 : this.#length)
    this.#parts.push(text)
  }
  toString(): string {
    reserve(this.#length)
    return this.#parts.join("")
  }
}
