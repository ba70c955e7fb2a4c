import { fail } from "./errors.ts"
import { type Branch, children, type Node } from "./nodes.ts"

/** Initial value of a variable when its scope is entered. */
export type Load =
  | { readonly kind: "parameter" | "missing" }
  | { readonly kind: "context"; readonly name: string }
  | { readonly kind: "outer"; readonly place: Place }

/** Location of a variable: number of scopes outwards, and slot there. */
export interface Place {
  readonly hops: number
  readonly slot: number
}

/**
 * Variables of a scope, by the rules of Jinja2: a name that is read first comes from outside; a name that is set first has no initial value,
 * even if the template's variables contain it.
 */
export class Symbols {
  readonly parent: Symbols | undefined
  /** Slots by name. */
  #slots = new Map<string, number>()
  #loads = new Map<string, Load>()
  #stores = new Set<string>()

  constructor(parent: Symbols | undefined) {
    this.parent = parent
  }

  get loads(): readonly (readonly [number, Load])[] {
    return Array.from(this.#loads, ([name, load]) => [this.#slots.get(name) as number, load])
  }

  get size(): number {
    return this.#slots.size
  }

  /** Finds a name in this scope or an outer one. */
  find(name: string): Place | undefined {
    const slot = this.#slots.get(name)
    if (slot !== undefined) return { hops: 0, slot }
    return this.#outer(name)
  }

  #outer(name: string): Place | undefined {
    const place = this.parent?.find(name)
    return place && { hops: place.hops + 1, slot: place.slot }
  }

  place(name: string): Place {
    return (
      this.find(name) ?? fail("AssertionError", `Tried to resolve a name that was unknown to the frame ('${name}')`)
    )
  }

  declare(name: string): Place {
    this.#stores.add(name)
    return { hops: 0, slot: this.#define(name, { kind: "parameter" }) }
  }

  #define(name: string, load: Load): number {
    const slot = this.#slots.get(name) ?? this.#slots.size
    this.#slots.set(name, slot)
    this.#loads.set(name, load)
    return slot
  }

  #store(name: string): void {
    this.#stores.add(name)
    if (this.#slots.has(name)) return
    const place = this.#outer(name)
    this.#define(name, place === undefined ? { kind: "missing" } : { kind: "outer", place })
  }

  #load(name: string): void {
    if (this.find(name) === undefined) this.#define(name, { kind: "context", name })
  }

  /** Records the names that nodes read and set in this scope, without nested scopes. */
  analyze(...nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (node.kind === "Name") this.#note(node)
      else if (node.kind === "NamespaceTarget") this.#load(node.name)
      else if (node.kind === "Macro") this.#store(node.name)
      else if (node.kind === "If") this.#analyzeBranches(node.branches, node.otherwise)
      else this.analyze(...partsHere(node))
    }
  }

  #note({ name, role }: Node & { readonly kind: "Name" }): void {
    if (role === "load") this.#load(name)
    else if (role === "store") this.#store(name)
    else this.declare(name)
  }

  #analyzeBranches(branches: readonly Branch[], otherwise: readonly Node[]): void {
    const [first, ...others] = branches
    if (first === undefined) return
    this.analyze(first.test)
    const body = this.#branch((branch) => branch.analyze(...first.body))
    const elifs = this.#branch((branch) => {
      for (const other of others) branch.#analyzeBranches([other], [])
    })
    const rest = this.#branch((branch) => branch.analyze(...otherwise))
    this.#merge([body, elifs, rest])
  }

  #branch(analyze: (branch: Symbols) => void): Symbols {
    const branch = new Symbols(this.parent)
    branch.#slots = new Map(this.#slots)
    branch.#loads = new Map(this.#loads)
    branch.#stores = new Set(this.#stores)
    analyze(branch)
    return branch
  }

  /** Merges branches: a name that only some branches set keeps its outer value in the others. */
  #merge(branches: readonly Symbols[]): void {
    const set = new Set(branches.flatMap((branch) => Array.from(branch.#stores)))
    for (const name of this.#stores) set.delete(name)
    for (const branch of branches) {
      for (const [name, load] of branch.#loads) this.#define(name, load)
      for (const name of branch.#stores) this.#stores.add(name)
    }
    for (const name of set) {
      const place = this.#outer(name)
      this.#define(name, place === undefined ? { kind: "context", name } : { kind: "outer", place })
    }
  }
}

/** Parts of a node that belong to the surrounding scope, in order of evaluation. */
function partsHere(node: Node): readonly Node[] {
  switch (node.kind) {
    case "Set":
      return [node.value, node.target]
    case "For":
      return [node.iterable]
    case "CallBlock":
      return [node.call]
    case "FilterBlock":
      return [node.filter]
    case "SetBlock":
      return [node.target]
    case "With":
      return node.values
    default:
      return children(node)
  }
}
