import { type Facts, factsOf, holds } from "./facts.ts"
import { fault, work } from "./fault.ts"

/** Argument: a slot (index of a variable in the binding), or ~n for object n. */
export type Term = number

/** Condition on a binding. Facts and objects of a type also bind unbound variables. */
export type Condition =
  | { readonly kind: "fact" | "no fact"; readonly predicate: number; readonly terms: readonly Term[] }
  | { readonly kind: "equal" | "unequal"; readonly terms: readonly [Term, Term] }
  | { readonly kind: "none"; readonly queries: readonly Query[]; readonly terms: readonly Term[] }
  | { readonly kind: "object"; readonly terms: readonly [Term] }

/** Variables of a rule by slot, with the objects that each may be bound to. */
export class Slots {
  readonly #members: Uint8Array[] = []
  /** Number of objects in the game. */
  readonly base: number
  /** Whether two variables are never bound to the same object. */
  readonly distinct: boolean

  constructor(base: number, distinct: boolean) {
    this.base = base
    this.distinct = distinct
  }

  get size(): number {
    return this.#members.length
  }

  add(members: Uint8Array): number {
    if (this.size === maxSlots) fault(`a rule has more than ${maxSlots} variables`)
    return this.#members.push(members) - 1
  }

  allows(slot: number, object: number, binding: Binding): boolean {
    if (this.#members[slot]![object] === 0) return false
    if (this.distinct) for (let other = 0; other < this.size; other++) if (binding[other] === object) return false
    return true
  }

  free(): Binding {
    return new Int32Array(maxSlots).fill(unbound)
  }
}

/** Object in each slot, or `unbound`. */
export type Binding = Int32Array
export const unbound = -1
const maxSlots = 64

/** Conjunction of conditions, evaluated in order by depth-first search. */
export class Query {
  readonly conditions: readonly Condition[]
  readonly #slots: Slots

  constructor(conditions: readonly Condition[], slots: Slots) {
    this.conditions = conditions
    this.#slots = slots
  }

  /** Predicates of the conditions, also of nested queries. */
  get reads(): readonly number[] {
    return this.conditions.flatMap((condition) => {
      if (condition.kind === "none") return condition.queries.flatMap(({ reads }) => reads)
      return "predicate" in condition ? [condition.predicate] : []
    })
  }

  /** Calls `visit` with every completion of the binding until it returns true. Returns whether it did. */
  match(facts: Facts, binding: Binding, visit: () => boolean): boolean {
    return this.#match(0, facts, binding, visit)
  }

  #match(index: number, facts: Facts, binding: Binding, visit: () => boolean): boolean {
    const condition = this.conditions[index]
    if (!condition) return visit()
    work(1)
    switch (condition.kind) {
      case "fact":
        return this.#eachFact(index, condition.predicate, condition.terms, facts, binding, visit)
      case "object":
        return this.#eachObject(index, condition.terms[0], facts, binding, visit)
      case "no fact":
        if (holds(facts, condition.predicate, encode(condition.terms, binding, this.#slots.base))) return false
        break
      case "none":
        if (condition.queries.some((query) => query.match(facts, binding, always))) return false
        break
      default: {
        const [left, right] = condition.terms
        if ((resolve(left, binding) === resolve(right, binding)) !== (condition.kind === "equal")) return false
      }
    }
    return this.#match(index + 1, facts, binding, visit)
  }

  #eachFact(
    index: number,
    predicate: number,
    terms: readonly Term[],
    facts: Facts,
    binding: Binding,
    visit: () => boolean,
  ): boolean {
    // Unbound arguments, as bits.
    let free = 0
    for (let i = 0; i < terms.length; i++) if (terms[i]! >= 0 && binding[terms[i]!] === unbound) free |= 1 << i
    if (free === 0) {
      return (
        holds(facts, predicate, encode(terms, binding, this.#slots.base)) &&
        this.#match(index + 1, facts, binding, visit)
      )
    }
    const list = factsOf(facts, predicate)
    work(list.length)
    for (const fact of list) {
      const stop = this.#unify(terms, fact, binding) && this.#match(index + 1, facts, binding, visit)
      for (let i = 0; i < terms.length; i++) if (free & (1 << i)) binding[terms[i]!] = unbound
      if (stop) return true
    }
    return false
  }

  #unify(terms: readonly Term[], fact: number, binding: Binding): boolean {
    const { base } = this.#slots
    for (let i = terms.length - 1; i >= 0; i--) {
      const object = i === 0 ? fact : fact % base
      fact = (fact - object) / base
      const term = terms[i]!
      const known = resolve(term, binding)
      if (known === object) continue
      if (known !== unbound || !this.#slots.allows(term, object, binding)) return false
      binding[term] = object
    }
    return true
  }

  #eachObject(index: number, slot: number, facts: Facts, binding: Binding, visit: () => boolean): boolean {
    if (binding[slot] !== unbound) return this.#match(index + 1, facts, binding, visit)
    work(this.#slots.base)
    for (let object = 0; object < this.#slots.base; object++) {
      if (!this.#slots.allows(slot, object, binding)) continue
      binding[slot] = object
      const stop = this.#match(index + 1, facts, binding, visit)
      binding[slot] = unbound
      if (stop) return true
    }
    return false
  }
}

export const always = () => true

export function resolve(term: Term, binding: Binding): number {
  return term < 0 ? ~term : binding[term]!
}

/** Fact of a predicate with these arguments. */
export function encode(terms: readonly Term[], binding: Binding, base: number): number {
  let fact = 0
  for (const term of terms) fact = fact * base + resolve(term, binding)
  return fact
}
