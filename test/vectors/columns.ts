import { find, type Table, type Vector } from "./topic.ts"

// What topics of tokens read: numbers of one sequence, or of several.

export type Numbers = readonly number[]

export const isTable = (given: unknown): given is Table => Array.isArray(given) && given.every(Array.isArray)

/** What one list gives, or each of several. */
export const each = <T>(given: Numbers | Table, of: (row: Numbers, at: number) => T): T | T[] =>
  isTable(given) ? given.map(of) : of(given, 0)

/** The size of the vocabulary, that or its logarithm; undefined if unknown. */
export function vocabularyOf(params: Vector["params"]): number | undefined {
  const logarithm = find<number>(params, ["log_V", "log_vocab", "H_max", "max_entropy"], Number.NaN)
  const size = find<number>(params, ["V", "vocab_size", "vocabulary", "vocab", "vocabulary_size"], Math.exp(logarithm))
  return Number.isNaN(size) ? undefined : size
}

export const entropyNames = ["entropy", "entropies", "H", "token_entropy", "ent"]
