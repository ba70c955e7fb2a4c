import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { byteCharacters, preTokenPattern } from "./byte-level.ts"
import { longestOf } from "./encoder.ts"

export interface TrainTokenizerOptions {
  /** Most ids to give out: 256 bytes, the learned tokens and the special tokens together. */
  readonly vocabularySize: number
  /** Default {@link chatMlTokens}. They get the highest ids and are never cut nor learned from. */
  readonly specialTokens?: readonly string[]
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<TrainTokenizerOptions> = { vocabularySize: true, specialTokens: true, signal: true }

/** What byte-level BPE has learned. */
export interface ByteLevelBpe {
  /** Tokens by id, in byte characters: the 256 bytes in order, then one token for every merge that made a new one. */
  readonly tokens: readonly string[]
  /** Pairs to merge, best first. */
  readonly merges: readonly (readonly [string, string])[]
  /** They follow the tokens: id = tokens.length + index. */
  readonly specialTokens: readonly string[]
}

/** The special tokens of ChatML: padding and end of text, start and end of a message. */
export const chatMlTokens: readonly string[] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

/** One distinct pre-token of the corpus, as the ids that it consists of so far. */
interface Word {
  ids: number[]
  readonly count: number
}

/**
 * Learns a byte-level BPE vocabulary (Sennrich et al., "Neural machine translation of rare words with subword units",
 * ACL 2016): merge the most frequent pair of neighbours, again and again, until the vocabulary is full or no pair
 * occurs twice. Among equally frequent pairs the one with the lowest ids wins, so the same texts give the same
 * tokenizer.
 */
export async function trainByteLevelTokenizer(
  texts: Iterable<string>,
  options: TrainTokenizerOptions,
): Promise<ByteLevelBpe> {
  checkArguments("trainByteLevelTokenizer", options, optionKeys)
  const specialTokens = options.specialTokens ?? chatMlTokens
  const room = options.vocabularySize - specialTokens.length
  if (!Number.isSafeInteger(options.vocabularySize) || room < 256) {
    const least = 256 + specialTokens.length
    throw new GigpoError(
      "BAD_ARGUMENT",
      `vocabularySize is ${options.vocabularySize}; give a whole number of at least ${least} (256 bytes and the special tokens)`,
    )
  }
  const tokens = [...byteCharacters]
  const idOf = new Map(tokens.map((token, id) => [token, id]))
  const merges: [string, string][] = []
  const pace = new Pace(options.signal)
  const pairs = new PairCounts(await countWords(texts, specialTokens, pace))
  while (tokens.length < room) {
    if (pace.due()) await pace.rest()
    const best = pairs.mostFrequent()
    if (best === undefined) break
    const [left, right] = best
    const merged = tokens[left]! + tokens[right]!
    merges.push([tokens[left]!, tokens[right]!])
    // Two different pairs can spell the same token; it keeps its first id.
    const id = idOf.get(merged) ?? tokens.push(merged) - 1
    idOf.set(merged, id)
    pairs.merge(left, right, id)
  }
  return { tokens, merges, specialTokens }
}

/** Distinct pre-tokens with how often each occurs, as bytes. */
async function countWords(texts: Iterable<string>, specialTokens: readonly string[], pace: Pace): Promise<Word[]> {
  const counts = new Map<string, number>()
  const special = new RegExp(longestOf(specialTokens))
  const preToken = new RegExp(preTokenPattern, "gu")
  for (const text of texts) {
    if (pace.due()) await pace.rest()
    for (const part of text.split(special))
      for (const [word] of part.matchAll(preToken)) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const encoder = new TextEncoder()
  return Array.from(counts, ([word, count]) => ({ ids: [...encoder.encode(word)], count }))
}

/** How often each pair of neighbouring ids occurs in the corpus, kept up to date while pairs are merged. */
class PairCounts {
  readonly #counts = new Map<number, number>()
  /** Words that have, or once had, the pair. */
  readonly #words = new Map<number, Set<Word>>()

  constructor(words: readonly Word[]) {
    for (const word of words) this.#add(word, word.count)
  }

  mostFrequent(): [number, number] | undefined {
    let [best, most] = [-1, 1]
    for (const [pair, count] of this.#counts)
      if (count > most || (count === most && best >= 0 && pair < best)) [best, most] = [pair, count]
    return best < 0 ? undefined : [Math.floor(best / idLimit), best % idLimit]
  }

  merge(left: number, right: number, id: number): void {
    const pair = left * idLimit + right
    for (const word of this.#words.get(pair) ?? []) {
      this.#add(word, -word.count)
      word.ids = mergePair(word.ids, left, right, id)
      this.#add(word, word.count)
    }
    this.#counts.delete(pair)
    this.#words.delete(pair)
  }

  #add(word: Word, count: number): void {
    for (let i = 1; i < word.ids.length; i++) {
      const pair = word.ids[i - 1]! * idLimit + word.ids[i]!
      this.#counts.set(pair, (this.#counts.get(pair) ?? 0) + count)
      if (count > 0) {
        const words = this.#words.get(pair)
        if (words) words.add(word)
        else this.#words.set(pair, new Set([word]))
      }
    }
  }
}

/** A pair is one number, so that it can key a map: left × idLimit + right, ordered as the pairs are. */
const idLimit = 2 ** 26

function mergePair(ids: readonly number[], left: number, right: number, id: number): number[] {
  const merged: number[] = []
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === left && ids[i + 1] === right) {
      merged.push(id)
      i++
    } else merged.push(ids[i]!)
  }
  return merged
}
