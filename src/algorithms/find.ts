import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"
import { type Algorithm, type Change, changes } from "./algorithm.ts"
import { algorithms } from "./algorithms.ts"

/** What is meant by words, each what is changed ("credit"), a name of ours ("hgpo") or part of a system's ("StepPO"), in the table's order. */
export function findAlgorithms(words: readonly string[]): readonly Algorithm[] {
  if (words.length === 0) return algorithms
  const found = new Set(words.flatMap(meant))
  return algorithms.filter((algorithm) => found.has(algorithm))
}

/** @throws GigpoError `BAD_ARGUMENT` where it is neither. */
function meant(word: string): readonly Algorithm[] {
  if (Object.hasOwn(changes, word)) return algorithms.filter((one) => one.changes.includes(word as Change))
  const plain = word.toLowerCase()
  const named = algorithms.filter((one) => namesOf(one).includes(plain))
  if (named.length > 0) return named
  const parts = algorithms.filter((one) => one.system.toLowerCase().includes(plain))
  if (parts.length > 0) return parts
  const near = nearestName(plain, [...new Set([...Object.keys(changes), ...algorithms.flatMap(namesOf)])])
  const hint = near === undefined ? `Known changes: ${Object.keys(changes).join(", ")}.` : `Did you mean ${near}?`
  throw new GigpoError("BAD_ARGUMENT", `There is no algorithm ${word}. ${hint}`)
}

/** The whole name of a system, the names that its settings have, and the functions that are handed in, all in small letters. */
function namesOf({ system, set = {}, code = "" }: Algorithm): string[] {
  const named = Object.entries(set).filter(([key]) => /\.(name|memory)$/.test(key))
  const called = code.match(/\w+(?=\()/g) ?? []
  return [system, ...named.map(([, value]) => String(value)), ...called].map((name) => name.toLowerCase())
}
