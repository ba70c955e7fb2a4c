import type { Domain } from "./domain.ts"
import { fault, work } from "./fault.ts"
import type { Problem } from "./problem.ts"

const maxObjects = 5000

/**
 * Numbers of the words of a game. Objects are numbered in the order of their ids. Sorting by number is therefore sorting by id, which
 * determines the order of all lists in the texts.
 */
export class Vocabulary {
  /** Ids by number. */
  readonly ids: readonly string[]
  readonly #objects: ReadonlyMap<string, number>
  readonly #types: readonly string[]
  readonly #parents: ReadonlyMap<string, string>
  readonly #declared: ReadonlyMap<string, number>
  readonly #members = new Map<string, Uint8Array>()
  readonly #predicates = new Map<string, number>()
  readonly #arities: number[] = []

  constructor(domain: Domain, problem: Problem) {
    const types = new Map<string, string>()
    for (const { name, type } of domain.constants) types.set(name, type)
    for (const { name, type } of problem.objects) types.set(name, type)
    if (types.size > maxObjects) fault(`there are more than ${maxObjects} objects`)
    this.ids = [...types.keys()].sort()
    this.#objects = new Map(this.ids.map((id, number) => [id, number]))
    this.#types = this.ids.map((id) => types.get(id)!)
    this.#parents = domain.parents
    this.#declared = domain.predicates
  }

  object(id: string): number {
    return this.#objects.get(id) ?? fault(`the object ${id} is not declared`)
  }

  find(id: string): number | undefined {
    return this.#objects.get(id)
  }

  /** 1 for the objects of a type or its subtypes, 0 for others, [objects]. An undeclared type has no objects. */
  members(type: string): Uint8Array {
    let members = this.#members.get(type)
    if (!members) {
      const below = new Map([...new Set(this.#types)].map((own) => [own, this.#isA(own, type) ? 1 : 0]))
      members = Uint8Array.from(this.#types, (own) => below.get(own)!)
      this.#members.set(type, members)
    }
    return members
  }

  #isA(own: string, type: string): boolean {
    // The count also ends a cyclic hierarchy.
    for (let at: string | undefined = own, up = 0; at !== undefined && up <= this.#parents.size; up++) {
      if (at === type) return true
      work(1)
      at = this.#parents.get(at)
    }
    return type === "object"
  }

  /** Number of a predicate, created if new. A predicate always has the same number of arguments. */
  predicate(name: string, arity: number): number {
    const known = this.#predicates.get(name)
    if (known !== undefined) {
      if (this.#arities[known] === arity) return known
      fault(`${name} has ${this.#arities[known]} arguments in one place and ${arity} in another`)
    }
    if (arity > 8 || this.ids.length ** arity > Number.MAX_SAFE_INTEGER) fault(`${name} has too many arguments`)
    this.#predicates.set(name, this.#arities.length)
    return this.#arities.push(arity) - 1
  }

  /** Number of a predicate in a rule or goal, which the domain must declare. Facts may have undeclared predicates. */
  declared(name: string, arity: number): number {
    const declared = this.#declared.get(name) ?? fault(`the predicate ${name} is not declared`)
    if (declared !== arity) fault(`the predicate ${name} is declared with ${declared} arguments, not ${arity}`)
    return this.predicate(name, arity)
  }

  findPredicate(name: string): { number: number; arity: number } | undefined {
    const number = this.#predicates.get(name)
    return number === undefined ? undefined : { number, arity: this.#arities[number]! }
  }
}
