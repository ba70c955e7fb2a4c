import { GigpoError } from "../util/errors.ts"
import { atOnce, Pace, type Pieces } from "../util/pace.ts"
import { analyse } from "./analyse.ts"
import { byteToLength } from "./length-byte.ts"
import { compareIds, idOf, postingsOf, type Segment } from "./segment.ts"
import { SegmentWriter } from "./segment-writer.ts"
import { Top } from "./top.ts"
import { Vocabulary } from "./vocabulary.ts"
import { forEachWord } from "./words.ts"

/** Text to index, with an id of the caller. */
export interface Document {
  readonly id: string
  readonly text: string
}

export interface Hit {
  /** Index of the document in the order given, from 0. */
  readonly document: number
  readonly id: string
  readonly score: number
}

export interface Bm25Options {
  /** Saturation of term frequency; at least 0. Default 0.9. */
  readonly k1?: number | undefined
  /** Length normalization, from 0 to 1. Default 0.4. */
  readonly b?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called now and then with the number of documents read so far. */
  readonly onProgress?: ((documents: number) => void) | undefined
}

const f = Math.fround

/** Term counts below this have precomputed denominators, one row of 256 lengths per count. */
const tabulated = 32

/**
 * Full-text index with Lucene's BM25 ranking and exact scores (`BM25Similarity` with anserini's k1 and b, the English
 * analyzer). Takes about 4 bytes per posting, about 300 MB for a million documents of 80 terms.
 */
export class Bm25Index {
  /** Number of documents. */
  readonly size: number
  readonly #segments: readonly Segment[]
  readonly #vocabulary: Vocabulary
  /** Documents with at least one term: N of the inverse document frequency, as in Lucene. */
  readonly #withTerms: number
  /** [length byte]: 1 / (k1 ((1 - b) + b length / average)). */
  readonly #inverses: Float32Array
  /** [count][length byte]: 1 + count × inverse. */
  readonly #denominators: Float32Array
  /** Zeroed sums of one segment each, for searches to reuse. */
  readonly #spare: Float64Array[] = []
  /** Number of documents of the largest segment. */
  readonly #longest: number

  /**
   * Builds an index of all documents. Yields to the event loop every few milliseconds. Throws `BAD_ARGUMENT` for k1 and
   * b out of range, `BAD_DATA` for a document without the strings id and text, and the signal's reason once it is
   * aborted.
   */
  static async build(
    documents: Iterable<Document> | AsyncIterable<Document>,
    { k1 = 0.9, b = 0.4, signal, onProgress }: Bm25Options = {},
  ): Promise<Bm25Index> {
    if (!(k1 >= 0 && k1 < Infinity)) throw new GigpoError("BAD_ARGUMENT", `k1 must be a number from 0, not ${k1}.`)
    if (!(b >= 0 && b <= 1)) throw new GigpoError("BAD_ARGUMENT", `b must be a number from 0 to 1, not ${b}.`)
    signal?.throwIfAborted()
    const pace = new Pace(signal)
    const vocabulary = new Vocabulary()
    const writer = new SegmentWriter()
    const segments: Segment[] = []
    let [size, withTerms, totalLength] = [0, 0, 0]
    const addWord = (word: string) => {
      const term = vocabulary.add(word)
      if (term >= 0) writer.add(term)
    }
    for await (const document of documents) {
      if (typeof document?.id !== "string" || typeof document.text !== "string")
        throw new GigpoError("BAD_DATA", `Document ${size + 1} must have the strings id and text.`)
      forEachWord(document.text, addWord)
      const length = writer.end(document.id)
      totalLength += length
      if (length > 0) withTerms++
      size++
      if (writer.full) segments.push(await writer.finish(pace))
      if (!pace.due()) continue
      onProgress?.(size)
      await pace.rest()
    }
    if (!writer.empty) segments.push(await writer.finish(pace))
    vocabulary.close()
    onProgress?.(size)
    return new Bm25Index({ size, segments, vocabulary, withTerms, averageLength: totalLength / withTerms, k1, b })
  }

  private constructor(parts: IndexParts) {
    this.size = parts.size
    this.#segments = parts.segments
    this.#vocabulary = parts.vocabulary
    this.#withTerms = parts.withTerms
    this.#inverses = inverseNorms(parts)
    this.#denominators = Float32Array.from(
      { length: tabulated * 256 },
      (_, i) => 1 + f((i >> 8) * this.#inverses[i & 255]!),
    )
    this.#longest = Math.max(0, ...parts.segments.map((segment) => segment.size))
  }

  /**
   * Best documents for a query, best first; equal scores are ordered by id. Unknown terms are ignored; a query without
   * known terms finds nothing.
   */
  search(query: string, limit = 50): Hit[] {
    return atOnce(this.#search(query, limit))
  }

  /**
   * `search` with turns of the event loop between the terms of a query. Throws the signal's reason once it is aborted.
   */
  async searchSlowly(query: string, limit: number, signal?: AbortSignal): Promise<Hit[]> {
    return await new Pace(signal).through(this.#search(query, limit))
  }

  *#search(query: string, limit: number): Pieces<Hit[]> {
    if (!Number.isInteger(limit) || limit < 0)
      throw new GigpoError("BAD_ARGUMENT", `limit must be an integer from 0, not ${limit}.`)
    const top = new Top(limit, (document, other) => this.#compareIds(document, other) < 0)
    yield* this.#score(query, top)
    return top.ranked().map(({ document, score }) => {
      const segment = this.#segmentOf(document)
      return { document, id: idOf(segment, document - segment.base), score }
    })
  }

  /** Number of documents with at least one of the query's terms. */
  total(query: string): number {
    return atOnce(this.#score(query, new Top(0, () => false)))
  }

  /** Offers every matching document to `top`. Returns their number. */
  *#score(query: string, top: Top): Pieces<number> {
    const weights = yield* this.#weights(query)
    let total = 0
    if (weights.length === 0) return total
    const sums = this.#spare.pop() ?? new Float64Array(this.#longest)
    for (const segment of this.#segments) {
      for (const [term, weight] of weights) {
        this.#accumulate(sums, segment, term, weight)
        yield
      }
      total += this.#collect(sums, segment, top)
      yield
    }
    this.#spare.push(sums)
    return total
  }

  /** Known terms of the query with weight m ln(1 + (N - df + 0.5) / (df + 0.5)), where m is the count in the query. */
  *#weights(query: string): Pieces<[term: number, weight: number][]> {
    const occurrences = new Map<number, number>()
    for (const part of parts(query)) {
      for (const term of analyse(part)) {
        const known = this.#vocabulary.find(term)
        if (known !== undefined) occurrences.set(known, (occurrences.get(known) ?? 0) + 1)
      }
      yield
    }
    return Array.from(occurrences, ([term, m]) => {
      let df = 0
      for (const segment of this.#segments) {
        const { from, to } = postingsOf(segment, term)
        df += to - from
      }
      return [term, f(m * f(Math.log(1 + (this.#withTerms - df + 0.5) / (df + 0.5))))]
    })
  }

  /** Adds w - w / (1 + count × inverse) to every document of the segment that contains the term. */
  #accumulate(sums: Float64Array, segment: Segment, term: number, weight: number): void {
    const { from, to } = postingsOf(segment, term)
    const { documents, counts, lengths } = segment
    const denominators = this.#denominators
    for (let posting = from; posting < to; posting++) {
      const document = documents[posting]!
      const count = counts[posting]!
      const length = lengths[document]!
      const denominator =
        count < tabulated
          ? denominators[(count << 8) | length]!
          : f(1 + f((segment.frequent.get(posting) ?? count) * this.#inverses[length]!))
      sums[document]! += f(weight - f(weight / denominator))
    }
  }

  #collect(sums: Float64Array, { base, size }: Segment, top: Top): number {
    let matching = 0
    let { threshold } = top
    for (let i = 0; i < size; i++) {
      const sum = sums[i]!
      if (sum === 0) continue
      sums[i] = 0
      matching++
      const score = f(sum)
      if (score < threshold) continue
      top.offer(score, base + i)
      threshold = top.threshold
    }
    return matching
  }

  #compareIds(document: number, other: number): number {
    const [a, b] = [this.#segmentOf(document), this.#segmentOf(other)]
    return compareIds(a, document - a.base, b, other - b.base) || document - other
  }

  #segmentOf(document: number): Segment {
    let low = 0
    let high = this.#segments.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#segments[middle]!.base <= document) low = middle
      else high = middle - 1
    }
    return this.#segments[low]!
  }
}

/** Characters of a query that are analyzed without a turn of the event loop. */
const partLength = 2048

/** Splits a text at white space, which is always a word boundary. */
function* parts(text: string): Generator<string> {
  const space = /[ \t\n\r]/g
  for (let from = 0; from < text.length; ) {
    space.lastIndex = from + partLength
    const to = space.exec(text)?.index ?? text.length
    yield text.slice(from, to)
    from = to
  }
}

interface IndexParts {
  readonly size: number
  readonly segments: readonly Segment[]
  readonly vocabulary: Vocabulary
  readonly withTerms: number
  readonly averageLength: number
  readonly k1: number
  readonly b: number
}

/** Inverse norms, in float32 throughout and in Lucene's order of operations. */
function inverseNorms({ averageLength, k1, b }: IndexParts): Float32Array {
  const [k, share, average] = [f(k1), f(b), f(averageLength)]
  return Float32Array.from({ length: 256 }, (_, byte) => {
    const relative = f(f(share * byteToLength(byte)) / average)
    return 1 / f(k * f(f(1 - share) + relative))
  })
}
