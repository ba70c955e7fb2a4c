import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"
import { type Algorithm, type AlgorithmPart, changes } from "./algorithm.ts"
import { algorithms } from "./algorithms.ts"

/**
 * Returns the algorithms that words select, in the order of the table. A word is a kind of change ("credit"), a name in gigpo ("hgpo"), a
 * part of the name of a system ("StepPO"), or else a part of an equation or note ("dual clip"). Without words, all algorithms are returned.
 */
export function findAlgorithms(words: readonly string[]): readonly Algorithm[] {
  if (words.length === 0) return algorithms
  const found = new Set(words.flatMap(meant))
  return algorithms.filter((algorithm) => found.has(algorithm))
}

/**
 * Algorithms that a word selects.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a word without a match.
 */
function meant(word: string): readonly Algorithm[] {
  if (Object.hasOwn(changes, word)) return algorithms.filter((one) => one.changes.includes(word as AlgorithmPart))
  const plain = word.toLowerCase()
  const named = algorithms.filter((one) => namesOf(one).includes(plain))
  if (named.length > 0) return named
  const parts = algorithms.filter((one) => one.system.toLowerCase().includes(plain))
  if (parts.length > 0) return parts
  const mentions = algorithms.filter(({ equation = "", note = "" }) =>
    `${equation}\n${note}`.toLowerCase().includes(plain),
  )
  if (mentions.length > 0) return mentions
  const near = nearestName(plain, [...new Set([...Object.keys(changes), ...algorithms.flatMap(namesOf)])])
  const hint = near === undefined ? `Known changes: ${Object.keys(changes).join(", ")}.` : `Did you mean ${near}?`
  throw new GigpoError("BAD_ARGUMENT", `There is no algorithm ${word}. ${hint}`)
}

/** Lower-case names of an algorithm: the system, the names in its settings, and the functions in its code. */
function namesOf({ system, set = {}, code = "" }: Algorithm): string[] {
  const named = Object.entries(set).filter(([key]) => /\.(name|memory)$/.test(key))
  const called = code.match(/\w+(?=\()/g) ?? []
  return [system, ...named.map(([, value]) => String(value)), ...called].map((name) => name.toLowerCase())
}
