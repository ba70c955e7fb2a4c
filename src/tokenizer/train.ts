import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { byteCharacters, preTokenPattern } from "./byte-level.ts"
import { longestOf } from "./encoder.ts"

/** Options of `trainByteLevelTokenizer`. */
export interface TrainTokenizerOptions {
  /** Maximum number of ids: 256 bytes, learned tokens and special tokens. */
  readonly vocabularySize: number
  /** Special tokens, which get the highest ids. They are never split, and are cut out of the training texts. Default {@link chatMlTokens}. */
  readonly specialTokens?: readonly string[]
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<TrainTokenizerOptions> = { vocabularySize: true, specialTokens: true, signal: true }

/** Trained byte-level BPE vocabulary. */
export interface ByteLevelBpe {
  /** Tokens by id, in byte characters: the 256 bytes in order, then the tokens of the merges. */
  readonly tokens: readonly string[]
  /** Pairs to merge, in descending priority. */
  readonly merges: readonly (readonly [string, string])[]
  /** Special tokens, with the ids tokens.length + index. */
  readonly specialTokens: readonly string[]
}

/** Special tokens of ChatML: padding and end of text, start and end of a message. */
export const chatMlTokens: readonly string[] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

/** Distinct pre-token of the corpus with its current ids and frequency. */
interface Word {
  ids: number[]
  readonly count: number
}

/**
 * Trains a byte-level BPE vocabulary (Sennrich et al., "Neural machine translation of rare words with subword units",
 * ACL 2016): merges the most frequent pair of adjacent tokens until the vocabulary is full or no pair occurs twice. Of equally frequent
 * pairs the one with the lowest ids is merged, so equal texts give equal tokenizers.
 *
 * @throws BAD_ARGUMENT for a vocabulary size below 256 + the number of special tokens
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
      `vocabularySize is ${options.vocabularySize}; give an integer of at least ${least} (256 bytes and the special tokens)`,
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
    // Different pairs can give the same token, which keeps its first id.
    const id = idOf.get(merged) ?? tokens.push(merged) - 1
    idOf.set(merged, id)
    pairs.merge(left, right, id)
  }
  return { tokens, merges, specialTokens }
}

/** Distinct pre-tokens as bytes, with their frequencies. */
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

/** Frequencies of pairs of adjacent ids in the corpus, updated by merges. */
class PairCounts {
  readonly #counts = new Map<number, number>()
  /** Words that contain, or once contained, a pair. */
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

/** A pair is encoded as the number left × idLimit + right, which can be a key of a map and has the order of pairs. */
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
