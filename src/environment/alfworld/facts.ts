import { work } from "./fault.ts"

/**
 * True facts by predicate. A fact is a number with the arguments as digits: (a, b) of n objects is a · n + b. So ascending numbers are
 * sorted by the first argument, then by the next. Lists are never changed in place.
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

/** Adds or removes a fact of a set under construction. */
export function put(facts: (readonly number[])[], predicate: number, fact: number, present: boolean): void {
  const list = factsOf(facts, predicate)
  const at = position(list, fact)
  if ((list[at] === fact) === present) return
  work(list.length)
  facts[predicate] = present ? list.toSpliced(at, 0, fact) : list.toSpliced(at, 1)
}

/** Arguments of a fact. */
export function digits(fact: number, arity: number, base: number): number[] {
  const list = new Array<number>(arity)
  for (let i = arity - 1; i >= 0; i--) {
    list[i] = fact % base
    fact = Math.floor(fact / base)
  }
  return list
}

/** Index of a fact in a sorted list, or the index at which to insert it. */
function position(list: readonly number[], fact: number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (list[middle]! < fact) low = middle + 1
    else high = middle
  }
  return low
}
