import { work } from "./fault.ts"

/**
 * The facts that hold, by predicate. A fact is one number, its arguments being the digits: (a, b) of n objects is
 * a · n + b. In ascending order, facts are ordered by their first argument, then the next. Never changed in place.
 */
export type Facts = readonly (readonly number[])[]

const none: readonly number[] = []

export function factsOf(facts: Facts, predicate: number): readonly number[] {
  return facts[predicate] ?? none
}

export function holds(facts: Facts, predicate: number, fact: number): boolean {
  const list = factsOf(facts, predicate)
  return list[position(list, fact)] === fact
}

/** Adds or removes a fact of a set that is still being made. */
export function put(facts: (readonly number[])[], predicate: number, fact: number, present: boolean): void {
  const list = factsOf(facts, predicate)
  const at = position(list, fact)
  if ((list[at] === fact) === present) return
  work(list.length)
  facts[predicate] = present ? list.toSpliced(at, 0, fact) : list.toSpliced(at, 1)
}

/** The arguments of a fact. */
export function digits(fact: number, arity: number, base: number): number[] {
  const list = new Array<number>(arity)
  for (let i = arity - 1; i >= 0; i--) {
    list[i] = fact % base
    fact = Math.floor(fact / base)
  }
  return list
}

/** Where a fact stands, or would stand. */
function position(list: readonly number[], fact: number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (list[middle]! < fact) low = middle + 1
    else high = middle
  }
  return low
}
