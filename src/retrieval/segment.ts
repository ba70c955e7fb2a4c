/** The postings of up to 65,536 neighbouring documents: of each term, which of them hold it and how often. */
export interface Segment {
  /** Number of its first document. */
  readonly base: number
  readonly size: number
  /** Terms that occur, ascending. */
  readonly terms: Uint32Array
  /** [terms + 1]: where the postings of each term start. */
  readonly starts: Uint32Array
  /** [postings]: document, counted from `base`, ascending within a term. */
  readonly documents: Uint16Array
  /** [postings]: how often the term occurs there; 255 stands for more, see `frequent`. */
  readonly counts: Uint8Array
  /** Posting to count, where it is 255 or more. */
  readonly frequent: ReadonlyMap<number, number>
  /** [size]: length of each document, as one byte. */
  readonly lengths: Uint8Array
  /** The ids in UTF-8, one after the other, and where each starts; [size + 1]. */
  readonly ids: Uint8Array
  readonly idStarts: Uint32Array
}

/** The postings of a term that a segment does not have. */
const none = { from: 0, to: 0 }

/** Where the postings of a term stand. */
export function postingsOf({ terms, starts }: Segment, term: number): { from: number; to: number } {
  let low = 0
  let high = terms.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (terms[middle]! < term) low = middle + 1
    else high = middle
  }
  return terms[low] === term ? { from: starts[low]!, to: starts[low + 1]! } : none
}

/** Order of two ids by their UTF-8 bytes, which is the order of their code points. */
export function compareIds(a: Segment, i: number, b: Segment, j: number): number {
  const end = a.idStarts[i + 1]!
  const otherEnd = b.idStarts[j + 1]!
  let at = a.idStarts[i]!
  let other = b.idStarts[j]!
  for (; at < end && other < otherEnd; at++, other++) {
    const difference = a.ids[at]! - b.ids[other]!
    if (difference !== 0) return difference
  }
  return end - at - (otherEnd - other)
}

export function idOf({ ids, idStarts }: Segment, i: number): string {
  return Buffer.from(ids.buffer, ids.byteOffset + idStarts[i]!, idStarts[i + 1]! - idStarts[i]!).toString()
}
